//! No import cycles between the files of one folder.
//!
//! A file imports another one if it names an item that the other file defines, in a `use` or in a
//! path such as `args::mode()`. Re-exports are followed to the file that defines the item; they are
//! no import of the file that re-exports. So a `mod.rs` that only declares and re-exports its
//! children is in no cycle. One that defines a type is in one if it also uses children that use the
//! type. Importing a module alone does not count, because its items are named later. Test code is
//! left out, and so are methods, which belong to a type that the caller has named.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::code::{Source, sources};

/// Folders of `src` with cycles that are left for now.
const CYCLIC: &[&str] = &[];

#[test]
fn files_of_a_folder_have_no_import_cycle() {
    let problems = problems(&sources(), CYCLIC);
    assert!(problems.is_empty(), "{}\n", problems.join("\n"));
}

/// Returns one line for each group of files that import each other, and for each folder in
/// `cyclic` that has no such group.
pub(crate) fn problems(files: &[Source], cyclic: &[&str]) -> Vec<String> {
    let graph = Graph::new(files);
    let cycles = graph.cycles();
    let folder = |cycle: &[usize]| files[cycle[0]].folder().to_owned();
    let fresh = cycles.iter().filter(|cycle| !cyclic.contains(&folder(cycle).as_str()));
    let shown = fresh.map(|cycle| {
        let names: Vec<&str> = cycle.iter().map(|at| files[*at].name.as_str()).collect();
        format!("import cycle: {}", names.join(" -> "))
    });
    let mended = cyclic.iter().filter(|name| cycles.iter().all(|cycle| folder(cycle) != **name));
    let mended = mended.map(|name| format!("{name}: no cycle; take it off the list of folders"));
    shown.chain(mended).collect()
}

/// The imports of one file: the name in its scope, the path, and whether others see it.
struct Import {
    name: String,
    path: Vec<String>,
    is_public: bool,
}

/// The files as nodes, and the files that each one imports.
struct Graph {
    edges: Vec<BTreeSet<usize>>,
}

impl Graph {
    fn new(files: &[Source]) -> Graph {
        let names = Names::new(files);
        let edges = (0..files.len()).map(|at| names.imported_by(at)).collect();
        Graph { edges }
    }

    /// Returns a shortest cycle of each group of files that import each other.
    fn cycles(&self) -> Vec<Vec<usize>> {
        let reached: Vec<_> = (0..self.edges.len()).map(|at| self.reached_from(at)).collect();
        let mut cycles = Vec::new();
        let mut seen = BTreeSet::<usize>::new();
        for (at, group) in reached.iter().enumerate() {
            if !seen.contains(&at)
                && let Some(cycle) = self.path(at, at)
            {
                // The whole group is reported once.
                seen.extend(group.iter().filter(|other| reached[**other].contains(&at)));
                cycles.push(cycle);
            }
        }
        cycles
    }

    fn reached_from(&self, from: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            open.extend(self.edges[at].iter().filter(|next| reached.insert(**next)));
        }
        reached
    }

    /// Returns a shortest path of at least one step.
    fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut paths: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut queue = VecDeque::from([vec![from]]);
        while let Some(path) = queue.pop_front() {
            for next in path.last().into_iter().flat_map(|last| &self.edges[*last]) {
                let longer: Vec<usize> = path.iter().copied().chain([*next]).collect();
                if *next == to {
                    return Some(longer);
                }
                if !paths.contains_key(next) {
                    paths.insert(*next, longer.clone());
                    queue.push_back(longer);
                }
            }
        }
        None
    }
}

/// The modules of all crates, and what each one imports.
struct Names<'a> {
    files: &'a [Source],
    modules: BTreeMap<Vec<String>, usize>,
    imports: Vec<Vec<Import>>,
    /// The words of each file outside its imports.
    words: Vec<Vec<&'a str>>,
}

impl<'a> Names<'a> {
    fn new(files: &'a [Source]) -> Names<'a> {
        let modules = files.iter().enumerate().map(|(at, file)| (file.module(), at)).collect();
        let (imports, words) = files.iter().map(split).unzip();
        Names { files, modules, imports, words }
    }

    fn imported_by(&self, at: usize) -> BTreeSet<usize> {
        let module = self.files[at].module();
        let words = &self.words[at];
        let used = self.imports[at].iter().filter(|import| {
            !import.is_public || words.contains(&import.name.as_str()) && is_type(&import.name)
        });
        let named = used.map(|import| import.path.clone());
        let targets = named.chain(paths(words)).filter_map(|path| {
            let path = self.absolute(&module, at, &path)?;
            self.definer(&path, 0)
        });
        targets.filter(|target| *target != at).collect()
    }

    /// Returns the path below the crate's name, or `None` for one that begins in another crate.
    fn absolute(&self, module: &[String], at: usize, path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => module.iter().take(1).cloned().collect(),
            "self" => module.to_vec(),
            "super" => {
                let ups = path.iter().take_while(|word| *word == "super").count();
                let parent = module[..module.len().checked_sub(ups)?].to_vec();
                return Some([parent, path[ups..].to_vec()].concat());
            }
            name => {
                let child = [module, &[name.to_owned()]].concat();
                let import = self.imports[at].iter().find(|import| import.name == name);
                match import {
                    Some(import) if import.path.first() != Some(first) => {
                        self.absolute(module, at, &import.path)?
                    }
                    _ if self.modules.contains_key(&child) => child,
                    _ => return None,
                }
            }
        };
        Some([start, rest.to_vec()].concat())
    }

    /// Returns the file that defines an item; `None` for a module.
    fn definer(&self, path: &[String], depth: usize) -> Option<usize> {
        let length = (0..=path.len()).rev().find(|end| self.modules.contains_key(&path[..*end]))?;
        let (module, rest) = path.split_at(length);
        let Some(item) = rest.first() else {
            // A function can have the name of its module: `ui::views::home`.
            let (name, parent) = module.split_last()?;
            return self.reexported(parent, name, depth);
        };
        let at = *self.modules.get(module)?;
        self.reexported(module, item, depth).or(Some(at))
    }

    /// Returns the file that defines an item which a module imports.
    fn reexported(&self, module: &[String], name: &str, depth: usize) -> Option<usize> {
        let at = *self.modules.get(module)?;
        let import = self.imports[at].iter().find(|import| import.name == name)?;
        let path = self.absolute(module, at, &import.path)?;
        // A re-export of a name from itself does not compile, so eight steps are plenty.
        if depth > 8 { None } else { self.definer(&path, depth + 1) }
    }
}

fn is_type(name: &str) -> bool {
    name.chars().next().is_some_and(char::is_uppercase)
}

/// Splits a file into its imports and all other words.
fn split(file: &Source) -> (Vec<Import>, Vec<&str>) {
    let mut imports = Vec::new();
    let mut rest = Vec::new();
    let words = &file.words;
    let mut at = 0;
    while at < words.len() {
        // `impl Trait + use<>` is no import.
        if words[at] == "use" && words.get(at + 1).is_some_and(|next| next != "<") {
            let end =
                words[at..].iter().position(|word| word == ";").map_or(words.len(), |n| at + n);
            let is_public = at > 0 && (words[at - 1] == "pub" || words[at - 1] == ")");
            tree(&words[at + 1..end], &[], is_public, &mut imports);
            at = end;
        } else {
            rest.push(words[at].as_str());
        }
        at += 1;
    }
    (imports, rest)
}

/// Reads a use tree: `a::b`, `a::b as c`, or `a::{b, c::d}`.
fn tree(words: &[String], prefix: &[String], is_public: bool, found: &mut Vec<Import>) {
    let mut path = prefix.to_vec();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "{" => {
                for branch in branches(&words[at + 1..words.len() - 1]) {
                    tree(branch, &path, is_public, found);
                }
                return;
            }
            "::" => {}
            "as" => break,
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
        at += 1;
    }
    let alias = words.get(at + 1).or(path.last());
    if let Some(name) = alias.cloned() {
        found.push(Import { name, path, is_public });
    }
}

/// Splits the inside of a group at its commas.
fn branches(words: &[String]) -> Vec<&[String]> {
    let mut depth = 0;
    let mut is_comma = |word: &String| {
        depth += i32::from(word == "{") - i32::from(word == "}");
        depth == 0 && word == ","
    };
    words.split(|word| is_comma(word)).filter(|branch| !branch.is_empty()).collect()
}

/// Returns every path of at least two segments.
fn paths(words: &[&str]) -> Vec<Vec<String>> {
    let is_word = |word: &&str| word.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let start = at;
        while words.get(at).is_some_and(is_word) && words.get(at + 1) == Some(&"::") {
            at += 2;
        }
        let is_tail = start > 0 && words[start - 1] == "::";
        if at > start && !is_tail {
            let end = if words.get(at).is_some_and(is_word) { at + 1 } else { at };
            let path = words[start..end].iter().filter(|word| **word != "::");
            found.push(path.map(|word| (*word).to_owned()).collect());
        }
        at = at.max(start + 1);
    }
    found
}
