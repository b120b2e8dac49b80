//! Pure. Texts that tell the model what to do beyond what the tool is, in English and Chinese.
//!
//! Patterns are matched against a plain form of the text, so that capitals, emphasis, full-width or look-alike letters and
//! unseen characters between letters do not hide a word.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use super::{excerpt, hidden::is_hidden};

/// English. A `.` of a pattern's gap never crosses the end of a sentence.
const ENGLISH: &[&str] = &[
    // Away from what was said before, and from other tools.
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?]{0,30}\b(?:previous|prior|above|earlier|preceding|system|your|original)\b[^.!?]{0,20}\b(?:instructions?|prompts?|rules|messages?|guidelines|directions|directives|tools?|policies|safety)\b",
    r"\b(?:ignore|disregard|forget|override)\b[^.!?]{0,20}\b(?:all|any|other|the rest of the)\b[^.!?]{0,12}\b(?:instructions|prompts|tools|guidelines|directives)\b",
    r"\b(?:do not|don't|never|must not|should not|avoid) (?:ever )?(?:use|using|call|calling|invoke|invoking|trust|trusting|rely on)(?: on)?(?: any| the)?(?: of the)? other (?:tools?|functions?|servers?)\b",
    r"\b(?:instead of|rather than|not)(?: using| calling)?(?: any| all| the)?(?: of the)? other (?:tools?|functions|servers)\b",
    r"\b(?:takes?|has|have) (?:precedence|priority) over (?:all|any|every|other|the other|your|previous|system)\b",
    r"\bsupersedes? (?:all|any|every|other|your|previous)\b",
    r"\b(?:new|updated|real|actual) (?:instructions?|task|directives?) ?:",
    r"\b(?:from now on|from this point on|for the rest of (?:this|the) (?:conversation|session)),? (?:you|always|never|only|do|call|use|respond|answer)\b",
    r"\byou are now (?:a|an|the|in|going to)\b",
    r"\b(?:pretend|act as if|behave as if) (?:you|that you|to be)\b",
    // This tool before everything else.
    r"\b(?:always|must|first) (?:first )?(?:call|use|run|invoke|execute) (?:this|it)(?: (?:tool|function))? (?:first|before|for (?:every|each|all|any)|whenever|at the (?:start|beginning))\b",
    r"\b(?:always|must) (?:call|use|run|invoke|execute) this (?:tool|function)\b",
    r"\b(?:call|use|run|invoke|execute) this(?: (?:tool|function))? (?:first\b|before (?:any|every|all|each|anything|everything|you (?:answer|respond|reply)|answering|responding|replying)\b)",
    r"\b(?:before|prior to|after) (?:using|calling|running|invoking|you use|you call)(?: any| all| every| each)?(?: of the)? other (?:tools?|functions?)\b",
    r"\bbefore (?:using|calling|running|invoking) (?:any|every|each|all) (?:tools?|functions?)\b",
    r"\byou (?:should|need to|have to|ought to|will) (?:always|never|first|immediately)\b",
    r"\byou (?:are|were) (?:required|instructed|obliged|obligated|ordered|commanded|not allowed|forbidden) to\b",
    r"\b(?:ai|model|assistant|llm|agent|claude|chatgpt|codex) (?:must|shall|should|has to|is required to) (?:always|never|first|not|call|use|ignore|invoke|tell|say|respond|answer|include|send|read)\b",
    // Behind the user's back.
    r"\b(?:do not|don't|never|must not|should not|cannot|without) (?:ever )?(?:tell|telling|inform|informing|mention|mentioning|reveal|revealing|disclose|disclosing|show|showing|explain|explaining|report|reporting|say|saying)\b[^.!?]{0,30}\b(?:user|human|person|customer|operator|anyone|anybody)\b",
    r"\b(?:do not|don't|never|must not) (?:mention|reveal|disclose|talk about) (?:this|that|these|it|any of)\b",
    r"\b(?:do not|don't|never) let (?:the )?(?:user|human|customer|anyone) (?:know|see|find out|notice)\b",
    r"\b(?:keep|hide) (?:this|it|that|these|them)(?: instructions?| details?| step)? ?(?:secret|hidden|confidential|private)?(?: from| to) (?:the )?(?:user|human|customer|anyone)\b",
    r"\b(?:do not|don't|never) ask (?:the )?(?:user|human|customer)?(?: ?for)? ?(?:confirmation|permission|approval|consent)\b",
    r"\b(?:silently|secretly|quietly|covertly) (?:call|send|read|run|include|pass|forward|copy|upload|execute|invoke)\b",
    // Out with what is inside.
    r"\b(?:reveal|print|output|repeat|include|send|leak|show|return|expose|dump|copy|pass|provide)\b[^.!?]{0,40}\b(?:system prompt|system message|developer message|hidden instructions|initial instructions)\b",
    r"\byour (?:system prompt|system message|hidden instructions|initial instructions)\b",
    r"\b(?:send|forward|transmit|leak|exfiltrate) (?:me |us )?(?:the |all |its |their )?(?:full |entire |whole |complete )?(?:contents?|text|body) of\b",
    r"\b(?:send|forward|include|pass|provide|put|attach|paste|append|leak|exfiltrate)\b[^.!?]{0,40}\b(?:(?:conversation|chat|message) history|(?:full|entire|whole|complete) (?:conversation|chat)|previous messages|(?:user|customer)'?s? (?:password|credentials|api keys?|secrets|private keys?))\b",
    r"\b(?:read|open|cat|load|access|copy|include|get|fetch|send)\b[^.!?]{0,40}(?:~/?\.(?:ssh|aws|gnupg|kube|docker|netrc|cursor|claude|codex|config)\b|\.ssh/|id rsa|id ed25519|/etc/(?:passwd|shadow)|\bmcp\.json)",
    // Speaking as someone else.
    r"(?:^|\s)</?(?:important|system|system-reminder|system reminder|instructions?|critical|hidden|assistant|sys|user instructions)(?: [^>]{0,40})?>",
    r"<\|(?:im start|im end|system|user|assistant|endoftext|end|start header id)|\[/?inst\]|<</?sys>>",
    r"#{2,} ?(?:system|instructions?|new instructions) ?:",
];

/// Chinese. Blanks between its characters are taken out before.
const CHINESE: &[&str] = &[
    r"(?:忽略|无视|忘记|忘掉|不要理会|不要遵守|不要遵循|不必遵守|绕过|推翻)[^。！？；]{0,8}(?:之前|先前|以上|上面|上述|前面|此前|系统|原有|原来|你的)[^。！？；]{0,10}(?:指令|指示|提示词?|规则|要求|设定|限制|消息|工具|说明)",
    r"(?:忽略|无视|忘记|忘掉|不要理会|不要遵守|不要遵循)[^。！？；]{0,6}(?:其他|其它|别的|所有|任何|一切|全部)[^。！？；]{0,6}(?:指令|指示|提示词|工具|设定)",
    r"(?:不要|切勿|请勿|禁止|不得|不许|不可|别)(?:再)?(?:使用|调用|信任|相信|依赖)(?:任何)?(?:其他|其它|别的)[^。！？；]{0,6}(?:工具|函数|服务器|接口)",
    r"(?:而不是|而非|不用|代替)(?:使用|调用)?(?:任何|所有)?(?:其他|其它|别的)[^。！？；]{0,4}工具",
    r"(?:优先级?(?:高于|大于)|优先于|凌驾于)[^。！？；]{0,6}(?:其他|其它|所有|任何|一切|之前|系统)[^。！？；]{0,6}(?:工具|指令|指示|规则|提示)",
    r"(?:总是|始终|永远|务必|必须|一律|一定要|每次都?要?)(?:首?先|优先|立即|立刻)?(?:调用|使用|执行|运行)(?:此|本|这个|该)(?:工具|函数)",
    r"(?:首先|优先|最先|第一步)(?:必须|务必|要)?(?:调用|使用|执行|运行)(?:此|本|这个)(?:工具|函数)",
    r"(?:使用|调用|执行|运行)(?:任何|所有|一切|每个)?(?:其他|其它|别的|任何|所有)[^。！？；]{0,6}(?:工具|函数)(?:之?前|以前|之?后)",
    r"(?:回答|回复|答复)(?:用户|任何|所有)[^。！？；]{0,8}(?:之?前|以前)[^。！？；]{0,10}(?:必须|务必|一定要|都要)",
    r"(?:模型|助手|智能体|ai)(?:必须|务必|一定要|不得|不许|应当|应该|应)(?:先|首先|始终|总是|调用|使用|忽略|告诉|回答|回复|读取|发送|包含)",
    r"(?:不要|不得|切勿|请勿|千万别|别|禁止|不许|不能|不可|无需|绝不能?)(?:(?:将|把)[^。！？；]{0,6})?(?:告诉|告知|透露|泄露|泄漏|提及|说明)(?:给|任何)?[^。！？；]{0,6}(?:用户|使用者|客户|任何人|别人|他人)",
    r"(?:不要|不得|切勿|请勿|千万别|别|禁止|不许|不能|不可|绝不能?)(?:向|对|跟|和|让|被)[^。！？；]{0,3}(?:用户|使用者|客户|任何人)[^。！？；]{0,4}(?:提及|透露|泄露|说明|展示|提到|解释|说起|知道|发现|察觉|看到|得知)",
    r"(?:对|向)(?:用户|使用者|客户)(?:保密|隐瞒|隐藏)",
    r"(?:不要|无需|不必|切勿|不用)(?:向用户)?(?:请求|征求|询问|等待|取得)(?:用户)?(?:的)?(?:确认|同意|许可|批准|授权)",
    r"(?:悄悄|偷偷|暗中|秘密地?|静默地)(?:调用|发送|读取|执行|上传|复制|转发)",
    r"(?:输出|泄露|透露|显示|打印|告诉|返回|发送|复述|展示|提供|包含|附上)[^。！？；]{0,12}(?:系统提示词?|系统消息|初始指令|隐藏指令)",
    r"你的(?:系统提示词?|初始指令|隐藏指令)",
    r"(?:把|将)[^。！？；]{0,20}(?:密钥|私钥|密码|凭证|凭据|令牌|聊天记录|对话历史|对话内容|会话记录|全部内容|完整内容)[^。！？；]{0,10}(?:发送|上传|转发|传给|传递|提交|附在|附上|写入此|放入此|发给|填入)",
    r"(?:发送|上传|转发|附上|泄露|传入|提交)[^。！？；]{0,12}(?:对话历史|聊天记录|会话记录|完整对话|全部对话|用户的密码|用户的密钥|用户的凭据)",
    r"(?:读取|打开|获取|发送|查看|复制)[^。！？；]{0,20}(?:~/?\.(?:ssh|aws|gnupg|kube|docker|cursor|claude|codex|config)|\.ssh/|id rsa|id ed25519|/etc/(?:passwd|shadow)|mcp\.json)",
    r"(?:从现在起|从现在开始|从此刻起|从今以后)[，, ]?(?:你|您|只|必须|始终|所有)",
    r"(?:你|您)现在(?:是|扮演)(?:一个|一名|一位)?",
    r"(?:新的?|真正的|更新后的)(?:指令|指示|任务)[:：]",
    r"<(?:重要|系统|指令|提示)>|【(?:系统|系统指令|系统提示|隐藏指令)】",
];

/// "You must …" marks unless what follows is how a tool is called or who may call it.
const YOU_MUST: &str = r"\byou (?:must|shall) (?:not |also |either )?([a-z']+)";
const HARMLESS_AFTER_MUST: [&str; 30] = [
    "provide",
    "specify",
    "supply",
    "pass",
    "set",
    "give",
    "enter",
    "choose",
    "select",
    "have",
    "be",
    "own",
    "know",
    "configure",
    "enable",
    "install",
    "log",
    "sign",
    "authenticate",
    "accept",
    "agree",
    "exceed",
    "fill",
    "define",
    "create",
    "name",
    "quote",
    "escape",
    "encode",
    "register",
];
/// The same in Chinese.
const YOU_MUST_CHINESE: &str =
    r"(?:你|您)(?:必须|务必|一定要|需要始终|应始终|应当始终|不得|绝不能)(?:先|同时|至少|也)?(\S{0,2})";
const HARMLESS_AFTER_MUST_CHINESE: [&str; 16] = [
    "提供", "指定", "传入", "填写", "传递", "设置", "输入", "选择", "拥有", "登录", "是管", "具有", "具备", "配置",
    "有权", "超过",
];

struct Patterns {
    set: RegexSet,
    each: Vec<Regex>,
    you_must: [(Regex, &'static [&'static str]); 2],
}

/// `None` when a pattern is wrong, which a test rules out.
static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let all = || ENGLISH.iter().chain(CHINESE);
    Some(Patterns {
        set: RegexSet::new(all()).ok()?,
        each: all().map(|pattern| Regex::new(pattern)).collect::<Result<_, _>>().ok()?,
        you_must: [
            (Regex::new(YOU_MUST).ok()?, &HARMLESS_AFTER_MUST),
            (Regex::new(YOU_MUST_CHINESE).ok()?, &HARMLESS_AFTER_MUST_CHINESE),
        ],
    })
});

/// The first place where a text instructs the model, in an excerpt.
pub(super) fn find(text: &str) -> Option<String> {
    // The shortest pattern has more bytes.
    if text.len() < 6 {
        return None;
    }
    let patterns = PATTERNS.as_ref()?;
    let plain = Plain::of(text);
    let matched = patterns.set.matches(&plain.text);
    let found =
        matched.iter().filter_map(|place| patterns.each.get(place)?.find(&plain.text)).map(|found| found.range());
    let told = patterns.you_must.iter().filter_map(|(regex, harmless)| {
        let mut all =
            regex.captures_iter(&plain.text).filter_map(|captures| Some((captures.get(0)?, captures.get(1)?)));
        let harmful = |next: &str, before: &str| !harmless.contains(&next) && !before.ends_with("if ");
        all.find(|(whole, next)| harmful(next.as_str(), &plain.text[..whole.start()])).map(|(whole, _)| whole.range())
    });
    let first = found.chain(told).min_by_key(|range| range.start)?;
    let chars: Vec<char> = text.chars().collect();
    let (from, to) = (plain.origin(first.start), plain.origin(first.end.saturating_sub(1)) + 1);
    Some(excerpt(&chars, from, to.max(from)))
}

/// A text as it is matched, and where its parts come from.
struct Plain {
    text: String,
    /// For each byte of `text`: the number of the character in the original.
    origins: Vec<usize>,
}

impl Plain {
    fn of(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut plain = Self { text: String::with_capacity(text.len()), origins: Vec::with_capacity(text.len()) };
        // A blank is owed until it is known what follows.
        let mut blank = None;
        for (place, character) in chars.iter().enumerate() {
            let Some(folded) = folded(&chars, place, *character) else { continue };
            if folded.is_whitespace() {
                blank = blank.or(Some(place));
                continue;
            }
            if let Some(from) = blank.take() {
                let between_wide = is_wide(folded) && plain.text.chars().next_back().is_some_and(is_wide);
                if !between_wide {
                    plain.push(' ', from);
                }
            }
            folded.to_lowercase().for_each(|letter| plain.push(letter, place));
        }
        plain
    }

    fn push(&mut self, character: char, place: usize) {
        self.text.push(character);
        self.origins.resize(self.text.len(), place);
    }

    fn origin(&self, byte: usize) -> usize {
        self.origins.get(byte).or(self.origins.last()).copied().unwrap_or(0)
    }
}

/// A character as it is meant; `None` for one that only disturbs.
fn folded(chars: &[char], place: usize, character: char) -> Option<char> {
    Some(match character {
        // Tags spell ASCII that is not shown.
        '\u{e0020}'..='\u{e007e}' => char::from_u32(character as u32 - 0xe_0000)?,
        // An unseen character between words stands for nothing, a line feed for a blank.
        _ if is_hidden(chars, place) => return None,
        '*' | '`' | '"' | '“' | '”' => return None,
        '_' => ' ',
        '’' | '‘' | 'ʼ' => '\'',
        '\u{ff01}'..='\u{ff5e}' if !matches!(character, '，' | '：' | '；' | '！' | '？') => {
            char::from_u32(character as u32 - 0xfee0)?
        }
        'а' | 'А' => 'a',
        'е' | 'Е' => 'e',
        'о' | 'О' | 'ο' | 'Ο' => 'o',
        'р' | 'Р' => 'p',
        'с' | 'С' => 'c',
        'у' | 'У' => 'y',
        'х' | 'Х' => 'x',
        'і' | 'І' => 'i',
        'ѕ' | 'Ѕ' => 's',
        'М' => 'm',
        'Т' => 't',
        other => other,
    })
}

/// A character of Chinese writing, punctuation included: no blanks stand between two of them.
fn is_wide(character: char) -> bool {
    matches!(character, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_one() {
        assert!(PATTERNS.is_some());
        for pattern in ENGLISH.iter().chain(CHINESE) {
            Regex::new(pattern).unwrap();
        }
    }

    #[test]
    fn the_plain_form_knows_where_it_comes_from() {
        let plain = Plain::of("Ｙou  **mu\u{200b}st**\n你 必 须 x");
        assert_eq!(plain.text, "you must 你必须 x");
        assert_eq!(plain.origin(0), 0);
        assert_eq!(plain.origin(4), 7);
    }
}
