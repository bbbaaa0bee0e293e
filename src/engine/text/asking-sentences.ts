import { sentences } from './sentences.ts';

/**
 * Longest message that is split into sentences, in characters. A longer message counts as one question: whoever pastes
 * a document asks about all of it.
 */
const MAX_CHARACTERS = 4_000;
/** Most sentences that are returned where marks or words tell which ask: the last ones. */
const MAX_ASKING = 4;
/**
 * Most sentences that are returned where no mark tells which one asks, those with a question word included: the first
 * and the last ones.
 */
const MAX_UNMARKED = 8;

/** The sentences of a message that ask. */
export interface AskingSentences {
  /**
   * The sentences that ask or may ask, in their order, each as a text of its own. The list is empty for a message of
   * one sentence and for one that is too long to be split: such a message is one question.
   */
  readonly sentences: readonly string[];
  /**
   * False where no mark and no word tells which sentence asks: each of `sentences` may be the one. True where
   * `sentences` is empty.
   */
  readonly areKnown: boolean;
  /**
   * Whether the sentences can be answered without the others of the message. False where only words tell which ask and
   * the message has two sentences: the other one is often what the question is about.
   */
  readonly standAlone: boolean;
  /** Whether question marks tell which sentences ask. */
  readonly areMarked: boolean;
  /** Number of sentences that do not ask; 0 where `sentences` is empty. */
  readonly others: number;
  /**
   * Where only words tell which of three sentences or more ask, the first and last of the others. One of them may be
   * the question all the same: “papers on shells”.
   */
  readonly mayAsk: readonly string[];
}

const WHOLE: AskingSentences = {
  sentences: [],
  areKnown: true,
  areMarked: false,
  standAlone: false,
  others: 0,
  mayAsk: [],
};

/**
 * Finds the sentences of a message that ask. These are the sentences that end in a question mark. Where none does, they
 * are the sentences with a question word. Where there is no such word either, any sentence may ask. A line end inside a
 * paragraph does not end a sentence, since mail programs and terminals wrap lines.
 * @returns the last 4 sentences that ask, or the first and last 4 where it is not known which ask; none for a message
 *   of one sentence or of more than 4,000 characters
 */
export function askingSentences(message: string): AskingSentences {
  if (message.length > MAX_CHARACTERS || !MAY_HOLD_SEVERAL.test(message)) return WHOLE;
  const all = splitMessage(message.replace(LONE_LINE_END, ' ')).filter((text) => HAS_WORD.test(text));
  if (all.length < 2) return WHOLE;
  const marked = all.filter((text) => QUESTION_MARK.test(text));
  const areMarked = marked.length > 0;
  const standAlone = areMarked || all.length > 2;
  const asking = areMarked ? marked : all.filter((text) => QUESTION_WORD.test(text));
  const rest = all.filter((text) => !asking.includes(text));
  const found = { areMarked, standAlone, others: rest.length };
  if (asking.length === 0) return { ...found, sentences: endsOf(all, MAX_UNMARKED), areKnown: false, mayAsk: [] };
  const sentences = asking.slice(-MAX_ASKING);
  const mayAsk = standAlone && !areMarked ? endsOf(rest, MAX_UNMARKED - sentences.length) : [];
  return { ...found, sentences, areKnown: true, mayAsk };
}

/** The first and the last sentences of a list, half of `most` each: a question stands at one end of a long message. */
function endsOf(list: readonly string[], most: number): readonly string[] {
  if (list.length <= most) return list;
  const last = Math.ceil(most / 2);
  return [...list.slice(0, most - last), ...list.slice(-last)];
}

/**
 * Splits a message into sentences. Unlike in other texts, a sentence may begin with a small letter, since many people
 * type so, and what is quoted inside a sentence does not end it.
 */
function splitMessage(message: string): string[] {
  // Both replacements keep the length, so that the places of the sentences are those in the message.
  const marked = message
    .replace(QUOTED, (quoted) => quoted.replace(ENDS_INSIDE, ','))
    .replace(SMALL_BEGINNING, (mark) => `${mark.slice(0, -1)}A`);
  return sentences(marked).map(({ start, end }) => message.slice(start, end));
}

/** Matches what stands in quotes, with the closing quote and the letter that may follow it. */
const QUOTED = /(?:"[^"\n]{1,400}"|“[^”\n]{1,400}”|「[^」\n]{1,400}」|『[^』\n]{1,400}』)\p{L}?/gu;
/** Matches a mark inside of quotes, but not the last one where a blank or the end follows the quotes. */
const ENDS_INSIDE = /[.!?…。！？｡．؟।](?=["”」』]\p{L}|[^"”」』]*[^.!?…。！？｡．؟।"”」』])/gu;
/** Matches a small letter after a mark. Behind closing quotes it goes on with the sentence around the quotes. */
const SMALL_BEGINNING = /[.!?…][ \n]+\p{Ll}/gu;
/** Matches a mark that may end a sentence, with a letter or digit after it. */
const MAY_HOLD_SEVERAL = /[.!?…。！？｡．؟।;；\n][^]*[\p{L}\p{N}]/u;
const LONE_LINE_END = /(?<![\n\r])\r?\n(?![\r\n])/g;
const HAS_WORD = /[\p{L}\p{N}]/u;
/**
 * Matches a Latin, CJK, Arabic or Greek question mark at the end, with closing quotes or brackets behind it. The Greek
 * question mark looks like a semicolon.
 */
const QUESTION_MARK = /(?:[?？؟⁇⁈\u037e]|(?<=\p{Script=Greek});)["'”’»」』)\]]*$/u;

/**
 * Words that begin a question in English, German, French, Spanish, Italian, Portuguese, Dutch, Russian and Arabic, as
 * alternatives of a regular expression: `welche[rsnm]?` is one of them.
 */
const FIRST_WORDS = [
  'what|who|whom|whose|when|where|which|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will|would|should',
  'may|shall',
  'was|wer|wen|wem|wessen|wann|wo|wohin|woher|warum|wieso|wie|welche[rsnm]?|wozu|ist|sind|hat|haben|kann|gibt',
  'qué|quién|quiénes|cuándo|dónde|cómo|cuál|cuáles|cuántos?|cuántas?|por qué|que|qui|quand|où|pourquoi',
  'comment|quels?|quelles?|combien',
  'chi|cosa|quando|dove|perché|come|quale|quali|quanto|quanti|o que|quem|onde|por que|qual|quais',
  'wat|wie|wanneer|waar|waarom|hoe|welke?',
  'что|кто|кого|кому|чей|когда|где|куда|откуда|почему|зачем|как|какой|какая|какое|какие|каких|сколько|ли',
  'ما|ماذا|من|متى|أين|اين|كيف|لماذا|كم|هل|أي',
].join('|');
/**
 * Words of Turkish, Chinese, Japanese, Korean and Thai that make a question wherever they stand, as alternatives of a
 * regular expression.
 */
const WORDS_ANYWHERE = [
  '(?<!\\p{L})(?:ne|kim|kime|kimin|nerede|nereye|neden|niçin|nasıl|hangi|kaç|m[ıiuü](?:y[ıdsz]\\p{L}*)?)(?!\\p{L})',
  '什么|什麼|怎|哪|谁|誰|多少|几[个位天年月号点岁次种]|吗|嗎|呢$',
  '何|いつ|どこ|どれ|どの|なぜ|どう|いくつ|いくら|ですか|ますか|ましたか',
  '무엇|뭐|언제|어디|누구|누가|왜|어떻|몇|까요?$|나요?$',
  'อะไร|ใคร|เมื่อ(?:ไร|ใด)|ที่ไหน|ทำไม|อย่างไร|ยังไง|กี่|ไหม|เท่าไ[รห]',
].join('|');
const QUESTION_WORD = new RegExp(`^[\\s"'“«¿([]*(?:${FIRST_WORDS})(?!\\p{L})|${WORDS_ANYWHERE}`, 'iu');
