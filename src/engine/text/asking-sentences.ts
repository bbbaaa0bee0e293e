import { sentences } from './sentences.ts';

/** Longer messages are taken as one: whoever pastes a document asks about all of it. In characters. */
const MAX_CHARACTERS = 4_000;
const MAX_ASKING = 4;
const MAX_UNMARKED = 8;

export interface AskingSentences {
  /** The sentences that ask, in their order, each as a text of its own; none for a message of one sentence. */
  readonly sentences: readonly string[];
  /** False where no mark and no word tells which sentence asks, so that each of the last ones may. */
  readonly areKnown: boolean;
}

const WHOLE: AskingSentences = { sentences: [], areKnown: true };

/**
 * Finds the sentences of a message that ask: those that end in a question mark; where none does, those with a question word; where
 * there is no such word either, any of the last sentences may. A line end inside a paragraph is no end of a sentence, since mail
 * programs and terminals wrap lines.
 */
export function askingSentences(message: string): AskingSentences {
  if (message.length > MAX_CHARACTERS || !MAY_HOLD_SEVERAL.test(message)) return WHOLE;
  const found = sentences(message.replace(LONE_LINE_END, ' '))
    .map(({ text }) => text)
    .filter((text) => HAS_WORD.test(text));
  if (found.length < 2) return WHOLE;
  const marked = found.filter((text) => QUESTION_MARK.test(text));
  const asking = marked.length > 0 ? marked : found.filter((text) => QUESTION_WORD.test(text));
  if (asking.length > 0) return { sentences: asking.slice(-MAX_ASKING), areKnown: true };
  return { sentences: found.slice(-MAX_UNMARKED), areKnown: false };
}

/** A mark that may end a sentence, and a letter or digit after it. */
const MAY_HOLD_SEVERAL = /[.!?…。！？｡．؟।;；\n][^]*[\p{L}\p{N}]/u;
const LONE_LINE_END = /(?<![\n\r])\r?\n(?![\r\n])/g;
const HAS_WORD = /[\p{L}\p{N}]/u;
/** Latin, CJK, Arabic and Greek question marks; a closing quote or bracket may follow. The Greek one looks like a semicolon. */
const QUESTION_MARK = /(?:[?？؟⁇⁈\u037e]|(?<=\p{Script=Greek});)["'”’»」』)\]]*$/u;

/** Words that begin a question in European languages and in Arabic. */
const FIRST_WORDS = [
  'what|who|whom|whose|when|where|which|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|shall',
  'was|wer|wen|wem|wessen|wann|wo|wohin|woher|warum|wieso|wie|welche[rsnm]?|wozu|ist|sind|hat|haben|kann|gibt',
  'qué|quién|quiénes|cuándo|dónde|cómo|cuál|cuáles|cuántos?|cuántas?|por qué|que|qui|quand|où|pourquoi|comment|quels?|quelles?|combien',
  'chi|cosa|quando|dove|perché|come|quale|quali|quanto|quanti|o que|quem|onde|por que|qual|quais|wat|wie|wanneer|waar|waarom|hoe|welke?',
  'что|кто|кого|кому|чей|когда|где|куда|откуда|почему|зачем|как|какой|какая|какое|какие|каких|сколько|ли',
  'ما|ماذا|من|متى|أين|اين|كيف|لماذا|كم|هل|أي',
].join('|');
/** Words that ask wherever they stand: in Turkish, Chinese, Japanese, Korean and Thai. */
const WORDS_ANYWHERE = [
  '(?<!\\p{L})(?:ne|kim|kime|kimin|nerede|nereye|neden|niçin|nasıl|hangi|kaç|m[ıiuü](?:y[ıdsz]\\p{L}*)?)(?!\\p{L})',
  '什么|什麼|怎|哪|谁|誰|多少|几[个位天年月号点岁次种]|吗|嗎|呢$',
  '何|いつ|どこ|どれ|どの|なぜ|どう|いくつ|いくら|ですか|ますか|ましたか',
  '무엇|뭐|언제|어디|누구|누가|왜|어떻|몇|까요?$|나요?$',
  'อะไร|ใคร|เมื่อ(?:ไร|ใด)|ที่ไหน|ทำไม|อย่างไร|ยังไง|กี่|ไหม|เท่าไ[รห]',
].join('|');
const QUESTION_WORD = new RegExp(`^[\\s"'“«¿([]*(?:${FIRST_WORDS})(?!\\p{L})|${WORDS_ANYWHERE}`, 'iu');
