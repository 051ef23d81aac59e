//! The questions that a program asks its user by a tool, as Claude Code's AskUserQuestion does, and
//! the answers to them, which the tool takes as part of its input.

use serde_json::{Map, Value};

/// The key of the input under which the tool takes its answers, by the text of each question
/// (observed: 2.1.34, 2.1.332).
const ANSWERS: &str = "answers";

/// A question with the answers that the program suggests. All texts are foreign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserQuestion {
    pub text: String,
    pub header: Option<String>,
    pub options: Vec<UserOption>,
    /// More than one of the options may be chosen.
    pub takes_several: bool,
}

impl UserQuestion {
    /// Describes the question in one sentence: `Which colour? (1: red, 2: blue)`.
    pub fn describe(&self) -> String {
        let options: Vec<String> = (1..)
            .zip(&self.options)
            .map(|(nth, option)| format!("{nth}: {}", option.label))
            .collect();
        match options.is_empty() {
            true => self.text.clone(),
            false => format!("{} ({})", self.text, options.join(", ")),
        }
    }
}

/// An answer that the program suggests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserOption {
    pub label: String,
    pub description: Option<String>,
}

/// Returns the questions in the input of a tool; none if it asks nothing, or in another form.
pub fn questions_in(input: &Value) -> Vec<UserQuestion> {
    let list = input.get("questions").and_then(Value::as_array);
    list.and_then(|list| list.iter().map(question).collect()).unwrap_or_default()
}

fn question(value: &Value) -> Option<UserQuestion> {
    let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).map(str::to_owned);
    let option = |option: &Value| {
        let description = text(option, "description");
        Some(UserOption { label: text(option, "label")?, description })
    };
    let options = value.get("options").and_then(Value::as_array);
    Some(UserQuestion {
        text: text(value, "question")?,
        header: text(value, "header"),
        options: options.into_iter().flatten().filter_map(option).collect(),
        takes_several: value.get("multiSelect") == Some(&Value::Bool(true)),
    })
}

/// Returns the option of `answer` that says yes to a request with these questions.
pub fn option_for(questions: &[UserQuestion]) -> &'static str {
    match questions.len() {
        0 => "--approve",
        1 => "--answer TEXT",
        _ => "--answer 1=TEXT --answer 2=TEXT …",
    }
}

/// Returns true if the input holds an answer to each of the questions.
pub fn is_answered(input: &Map<String, Value>, questions: &[UserQuestion]) -> bool {
    let answers = input.get(ANSWERS);
    questions.iter().all(|question| answers.and_then(|all| all.get(&question.text)).is_some())
}

/// Returns the input with the answers in it. Each answer is `QUESTION=ANSWER`; with one question,
/// `ANSWER` is enough. The question is named by its number, its header or its text. The answer is
/// the number or the label of an option, or another text; several options are separated by commas
/// where the question takes several.
///
/// # Errors
/// A question without an answer, or with two; an answer that names no question.
pub fn with_answers(
    input: &Value,
    questions: &[UserQuestion],
    given: &[String],
) -> Result<Map<String, Value>, String> {
    let mut found: Vec<Option<String>> = vec![None; questions.len()];
    for text in given {
        let (at, answer) = match (named(questions, text), questions) {
            (Some(named), _) => named,
            (None, [_]) => (0, text.as_str()),
            (None, _) => {
                return Err(format!("{text:?} does not begin with one of its questions and `=`"));
            }
        };
        let answer = resolved(&questions[at], answer)?;
        if found[at].replace(answer).is_some() {
            return Err(format!("question {} has two answers", at + 1));
        }
    }
    let mut answers = Map::new();
    for (at, (question, answer)) in questions.iter().zip(found).enumerate() {
        let answer = answer
            .ok_or_else(|| format!("question {} has no answer: {:?}", at + 1, question.text))?;
        answers.insert(question.text.clone(), Value::String(answer));
    }
    let mut input = input.as_object().cloned().unwrap_or_default();
    input.insert(ANSWERS.to_owned(), Value::Object(answers));
    Ok(input)
}

/// Finds the question that the text names before a `=`, and the answer after it. Numbers come
/// first, because a header, which is foreign, can be a number.
fn named<'t>(questions: &[UserQuestion], text: &'t str) -> Option<(usize, &'t str)> {
    let (name, answer) = text.split_once('=')?;
    let numbered = name.trim().parse::<usize>().ok().and_then(|nth| nth.checked_sub(1));
    if let Some(at) = numbered.filter(|at| *at < questions.len()) {
        return Some((at, answer.trim()));
    }
    questions.iter().enumerate().find_map(|(at, question)| {
        let after = |name: &str| {
            let head = text.get(..name.len()).filter(|head| head.eq_ignore_ascii_case(name))?;
            text[head.len()..].trim_start().strip_prefix('=')
        };
        let names = [Some(question.text.as_str()), question.header.as_deref()];
        Some((at, names.into_iter().flatten().find_map(after)?.trim()))
    })
}

fn resolved(question: &UserQuestion, answer: &str) -> Result<String, String> {
    let label = |part: &str| {
        let part = part.trim();
        let by_number =
            part.parse::<usize>().ok().and_then(|nth| question.options.get(nth.checked_sub(1)?));
        let by_label = || {
            question.options.iter().find(|option| option.label.trim().eq_ignore_ascii_case(part))
        };
        by_number.or_else(by_label).map_or_else(|| part.to_owned(), |option| option.label.clone())
    };
    let whole = label(answer);
    let answer = match question.takes_several && whole == answer.trim() {
        true => answer.split(',').map(label).collect::<Vec<_>>().join(", "),
        false => whole,
    };
    if answer.trim().is_empty() {
        return Err(format!("the answer to {:?} is empty", question.text));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked() -> Value {
        json!({"questions": [
            {"question": "Which colour?", "header": "Colour", "multiSelect": false,
             "options": [{"label": "red", "description": "Make it red"}, {"label": "blue"}]},
            {"question": "Is a=b?", "header": "Parts", "multiSelect": true,
             "options": [{"label": "one"}, {"label": "two"}, {"label": "a, b"}]}
        ]})
    }

    fn answers(given: &[&str]) -> Result<[String; 2], String> {
        let (input, given) = (asked(), given.iter().map(|text| (*text).to_owned()));
        let questions = questions_in(&input);
        let full = with_answers(&input, &questions, &given.collect::<Vec<_>>())?;
        assert!(is_answered(&full, &questions));
        assert_eq!(full["questions"], input["questions"]);
        Ok(["Which colour?", "Is a=b?"]
            .map(|text| full["answers"][text].as_str().expect("a text").to_owned()))
    }

    #[test]
    fn pm_12_answers_are_found_by_number_header_text_and_label() {
        let cases: [(&[&str], [&str; 2]); 5] = [
            (&["Which colour?=blue", "Is a=b?=one"], ["blue", "one"]),
            (&["1=2", "2 = 1,2"], ["blue", "one, two"]),
            (&["colour=RED", "parts=two, three"], ["red", "two, three"]),
            (&["colour=as the sky = wide", "2=3"], ["as the sky = wide", "a, b"]),
            (&["2=a, b", "1=7"], ["7", "a, b"]),
        ];
        for (given, expected) in cases {
            assert_eq!(answers(given), Ok(expected.map(str::to_owned)), "{given:?}");
        }
    }

    #[test]
    fn pm_12_missing_double_and_unknown_answers_are_refused() {
        let cases: [(&[&str], &str); 5] = [
            (&[], "question 1 has no answer: \"Which colour?\""),
            (&["1=red"], "question 2 has no answer: \"Is a=b?\""),
            (&["1=red", "colour=blue", "2=1"], "question 1 has two answers"),
            (&["red"], "\"red\" does not begin with one of its questions and `=`"),
            (&["1=", "2=1"], "the answer to \"Which colour?\" is empty"),
        ];
        for (given, problem) in cases {
            assert_eq!(answers(given), Err(problem.to_owned()), "{given:?}");
        }
    }

    /// PM-12: a header is foreign text.
    #[test]
    fn pm_12_header_cannot_take_the_number_of_another_question() {
        let input = json!({"questions": [
            {"question": "Wipe it?", "header": "2", "options": []},
            {"question": "Print it?", "header": "1", "options": []}
        ]});
        let given = ["1=no".to_owned(), "2=yes".to_owned()];
        let full = with_answers(&input, &questions_in(&input), &given).expect("answers");
        assert_eq!(full["answers"], json!({"Wipe it?": "no", "Print it?": "yes"}));
    }

    #[test]
    fn one_question_needs_no_name() {
        let input = json!({"questions": [{"question": "Name?", "options": [{"label": "x"}]}]});
        let questions = questions_in(&input);
        let answer = |given: &str| {
            let full = with_answers(&input, &questions, &[given.to_owned()]).expect("answers");
            full["answers"]["Name?"].clone()
        };
        assert_eq!([answer("1"), answer("a=b"), answer("Name?=y")], ["x", "a=b", "y"]);
    }

    #[test]
    fn other_input_asks_nothing() {
        for input in [
            json!(null),
            json!({"questions": "x"}),
            json!({"questions": [{"text": "x"}]}),
            json!({"questions": []}),
        ] {
            assert_eq!(questions_in(&input), [], "{input}");
        }
    }
}
