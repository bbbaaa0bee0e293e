import { sentences } from './sentences.ts';

/**
 * Greatest length of a message that is split into sentences, in UTF-16 code units. A longer message counts as a single
 * question: whoever pastes a document asks about all of it.
 */
const MAX_CHARACTERS = 4_000;
/**
 * Greatest number of asking sentences that are returned if question marks or question words show which sentences ask;
 * the last ones are returned.
 */
const MAX_ASKING = 4;
/**
 * If nothing shows which sentences ask, at most this number is returned, from the beginning and the end. If only
 * question words show it, the asking sentences and `mayAsk` together have at most this number.
 */
const MAX_UNMARKED = 8;

/**
 * The sentences of a message (a query of several sentences) that ask a question, and what is known about the sentences
 * that do not.
 */
export interface AskingSentences {
  /**
   * The sentences that ask or may ask a question, in their order. The list is empty for a message of one sentence and
   * for a message of more than 4,000 characters: such a message counts as a single question.
   */
  readonly sentences: readonly string[];
  /**
   * Whether question marks or question words show which sentences ask. If false, any of `sentences` may be the
   * question. It is true if `sentences` is empty.
   */
  readonly areKnown: boolean;
  /**
   * Whether `sentences` can be understood without the rest of the message. It is false if `sentences` is empty, and for
   * a message of two sentences without a question mark, since the sentence that does not ask often says what the
   * question is about.
   */
  readonly standAlone: boolean;
  /** Whether question marks, and not only question words, show which sentences ask. */
  readonly areMarked: boolean;
  /**
   * Number of sentences that do not ask a question. It is 0 if `sentences` is empty, and the number of all sentences if
   * nothing shows which ones ask.
   */
  readonly others: number;
  /**
   * Sentences without a question word that may be the question nevertheless, such as “papers on shells”: some from the
   * beginning and the end of the message. It is empty unless question words, not question marks, show which sentences
   * ask and the message has at least three sentences.
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
 * Finds the sentences of a message that ask a question: those that end with a question mark; if there are none, those
 * with a question word; if there are none either, every sentence may ask. A single line break does not end a sentence,
 * since mail programs and terminals wrap lines.
 * @returns the last 4 asking sentences, or the first 4 and last 4 sentences if nothing shows which ones ask; no
 *   sentences for a message of one sentence or of more than 4,000 characters
 */
export function askingSentences(message: string): AskingSentences {
  if (message.length > MAX_CHARACTERS || !mayHoldSeveral(message)) return WHOLE;
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

/** Tells whether a text may have more than one sentence: a letter or digit after a mark that may end a sentence. */
function mayHoldSeveral(message: string): boolean {
  const end = message.search(MAY_END);
  return end !== -1 && HAS_WORD.test(message.slice(end + 1));
}

/**
 * Returns the first and the last elements of a list, at most `most` together: half of them from each end, and one more
 * from the end if `most` is odd. A question is often at one end of a long message.
 */
function endsOf(list: readonly string[], most: number): readonly string[] {
  if (list.length <= most) return list;
  const last = Math.ceil(most / 2);
  return [...list.slice(0, most - last), ...list.slice(-last)];
}

/**
 * Splits a message into sentences. Unlike in other texts, a sentence may begin with a small letter, since many people
 * type so, and marks inside a quotation do not end the sentence around it.
 */
function splitMessage(message: string): string[] {
  // Both replacements keep the length, so that the places of the sentences are those in the message.
  const marked = message
    .replace(QUOTED, (quoted) => quoted.replace(ENDS_INSIDE, ','))
    .replace(SMALL_BEGINNING, (mark) => `${mark.slice(0, -1)}A`);
  return sentences(marked).map(({ start, end }) => message.slice(start, end));
}

/** Matches a quotation, with its closing quote and the letter directly after it, if there is one. */
const QUOTED = /(?:"[^"\n]{1,400}"|“[^”\n]{1,400}”|「[^」\n]{1,400}」|『[^』\n]{1,400}』)\p{L}?/gu;
/**
 * Matches a punctuation mark inside a quotation that does not end the sentence around the quotation. A mark just before
 * the closing quote counts only if a letter follows the quote.
 */
const ENDS_INSIDE = /[.!?…。！？｡．؟।](?=["”」』]\p{L}|[^"”」』]*[^.!?…。！？｡．؟।"”」』])/gu;
/**
 * Matches an end mark, blanks and a small letter, so that a sentence in a chat message may begin with a small letter.
 */
const SMALL_BEGINNING = /[.!?…][ \n]+\p{Ll}/gu;
/** Matches a mark that may end a sentence. */
const MAY_END = /[.!?…。！？｡．؟।;；\n]/u;
const LONE_LINE_END = /(?<![\n\r])\r?\n(?![\r\n])/g;
const HAS_WORD = /[\p{L}\p{N}]/u;
/**
 * Matches a Latin, CJK, Arabic or Greek question mark at the end, even before closing quotes or brackets. The Greek
 * question mark looks like a semicolon.
 */
const QUESTION_MARK = /(?:[?？؟⁇⁈\u037e]|(?<=\p{Script=Greek});)["'”’»」』)\]]*$/u;

/**
 * Words that begin a question in English, German, French, Spanish, Italian, Portuguese, Dutch, Russian or Arabic, as
 * alternatives of a regular expression, such as `welche[rsnm]?`.
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
 * Words of Turkish, Chinese, Japanese, Korean and Thai that make a question at any place in a sentence, as alternatives
 * of a regular expression.
 */
const WORDS_ANYWHERE = [
  '(?<!\\p{L})(?:ne|kim|kime|kimin|nerede|nereye|neden|niçin|nasıl|hangi|kaç|m[ıiuü](?:y[ıdsz]\\p{L}*)?)(?!\\p{L})',
  '什么|什麼|怎|哪|谁|誰|多少|几[个位天年月号点岁次种]|吗|嗎|呢$',
  '何|いつ|どこ|どれ|どの|なぜ|どう|いくつ|いくら|ですか|ますか|ましたか',
  '무엇|뭐|언제|어디|누구|누가|왜|어떻|몇|까요?$|나요?$',
  'อะไร|ใคร|เมื่อ(?:ไร|ใด)|ที่ไหน|ทำไม|อย่างไร|ยังไง|กี่|ไหม|เท่าไ[รห]',
].join('|');
const QUESTION_WORD = new RegExp(`^[\\s"'“«¿([]*(?:${FIRST_WORDS})(?!\\p{L})|${WORDS_ANYWHERE}`, 'iu');
