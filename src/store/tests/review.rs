//! Tests of the comments on the work of members.

use super::*;
use model::review::ReviewLook;

#[test]
fn reviews_of_several_writers_are_all_kept() {
    on_both_stores(|team| {
        assert_eq!(team.review().expect("read"), model::review::TeamReview::default());
        let look = |commit: &str| ReviewLook {
            commit: commit.to_owned(),
            at: NOW,
            viewed: [("a/b.rs".to_owned(), "17".to_owned())].into(),
        };
        thread::scope(|scope| {
            for reviewer in ["ann", "bob", "cyd"] {
                scope.spawn(move || {
                    for n in 0..5 {
                        let edit = |review: &mut model::review::TeamReview| {
                            review.last += 1;
                            let looks = review.looks.entry(who(reviewer)).or_default();
                            looks.insert(who("dan"), look(&n.to_string()));
                            Ok(())
                        };
                        team.change_review(edit).expect("changed");
                    }
                });
            }
        });
        let review = team.review().expect("read");
        assert_eq!((review.last, review.looks.len()), (15, 3));
        assert_eq!(review.looks[&who("bob")][&who("dan")], look("4"));
    });
}
