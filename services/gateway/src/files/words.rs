//! Pure. What is said about a file that is not where it should be.

use gatehouse_types::Locale;
use gatehouse_workspace::Cause;

/// What is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The workspace did not take it.
    NotInWorkspace(Cause),
    /// The database did not take it either, or does not answer.
    Lost,
    /// It is in the workspace, but the database does not know it.
    Unlisted,
    /// The session would have more than so many bytes.
    Quota(u64),
    /// The session was deleted meanwhile.
    Deleted,
}

impl Reason {
    fn sentence(&self, locale: Locale) -> String {
        match (self, locale) {
            (Self::NotInWorkspace(cause), Locale::En) => {
                format!("It could not be saved in the workspace: {}.", cause.words(locale))
            }
            (Self::NotInWorkspace(cause), Locale::Zh) => format!("无法保存到工作区：{}。", cause.words(locale)),
            (Self::Lost, Locale::En) => "Its content could not be kept: the database did not take it.".to_owned(),
            (Self::Lost, Locale::Zh) => "内容未能保留：数据库未能保存。".to_owned(),
            (Self::Unlisted, Locale::En) => {
                "It is in the workspace, but not in the list of files: the database did not answer.".to_owned()
            }
            (Self::Unlisted, Locale::Zh) => "文件已在工作区中，但未列入文件列表：数据库没有响应。".to_owned(),
            (Self::Quota(most), Locale::En) => {
                format!("It was not saved: the files of this session may take at most {most} bytes together.")
            }
            (Self::Quota(most), Locale::Zh) => format!("未保存：本会话的文件合计不得超过 {most} 字节。"),
            (Self::Deleted, Locale::En) => "It was not saved: the session has been deleted.".to_owned(),
            (Self::Deleted, Locale::Zh) => "未保存：会话已被删除。".to_owned(),
        }
    }
}

/// All reasons in sentences; `None` when there are none.
pub(super) fn sentences(reasons: &[Reason], locale: Locale) -> Option<String> {
    let sentences: Vec<String> = reasons.iter().map(|reason| reason.sentence(locale)).collect();
    (!sentences.is_empty()).then(|| sentences.join(locale.pick(" ", "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_become_sentences_of_the_sessions_language() {
        let reasons = [Reason::NotInWorkspace(Cause::Full), Reason::Lost];
        assert_eq!(
            sentences(&reasons, Locale::En).unwrap(),
            "It could not be saved in the workspace: the disk of the workspace is full. \
             Its content could not be kept: the database did not take it."
        );
        assert_eq!(
            sentences(&reasons, Locale::Zh).unwrap(),
            "无法保存到工作区：工作区所在磁盘已满。内容未能保留：数据库未能保存。"
        );
        assert_eq!(sentences(&[], Locale::En), None);
    }

    #[test]
    fn every_reason_has_words_of_its_own_in_both_languages() {
        let all =
            [Reason::NotInWorkspace(Cause::Full), Reason::Lost, Reason::Unlisted, Reason::Quota(5), Reason::Deleted];
        let both = [Locale::En, Locale::Zh];
        let words: std::collections::BTreeSet<String> =
            both.iter().flat_map(|locale| all.iter().map(|reason| reason.sentence(*locale))).collect();
        assert_eq!(words.len(), 2 * all.len());
    }
}
