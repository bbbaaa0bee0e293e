/** Number of bytes at the start of a text from which its encoding is guessed. */
const JUDGED_BYTES = 65_536;
/**
 * Least number of letters of a script other than Latin for a guess; fewer letters prove nothing. Latin scripts have no
 * such limit: for them the confidence of chardet decides.
 */
const FEWEST_LETTERS = 24;
/**
 * Greatest share of misplaced characters among the characters beyond ASCII: characters that the language of the decoded
 * text would not have at that position.
 */
const MAX_MISPLACED = 0.05;
/** Least confidence of the best guess among Latin encodings, on chardet's scale of 0 to 100. */
const MIN_CONFIDENCE = 20;
/**
 * Least difference between the confidence of the best guess among Latin encodings and that of the next one that gives
 * another plausible text, in points on chardet's scale.
 */
const MIN_LEAD = 4;
/** Number of accented letters below which the difference must be `MIN_LEAD_OF_FEW` instead of `MIN_LEAD`. */
const FEW_ACCENTED = 8;
/**
 * Least difference between the confidence of the best guess and that of the next one that gives another plausible text,
 * for a text with few accented letters, in points on chardet's scale.
 */
const MIN_LEAD_OF_FEW = 15;

/**
 * Guesses the encoding of a text that is not Unicode and declares no encoding: the one in which it reads like a
 * language. Bytes are valid in many encodings, so letter frequencies decide. In every script a handful of letters make
 * up about half of any text, and with a wrong encoding other letters take their place. Latin scripts have too many
 * letters in common for that: for them chardet compares trigrams, and its guess is refused if symbols or capitals stand
 * inside words.
 * @param bytes the text; only its first 64 KiB are examined
 * @returns a name that TextDecoder knows; undefined if no encoding is convincing, since a wrong guess would be worse
 *   than none
 */
export async function guessEncoding(bytes: Uint8Array): Promise<string | undefined> {
  const sample = bytes.subarray(0, JUDGED_BYTES);
  return guessByScript(sample) ?? (await guessLatin(sample));
}

/** A script, with statistics of its letters by which the right encoding is recognised. */
interface ScriptProfile {
  readonly encodings: readonly string[];
  /** Matches a letter of the script. */
  readonly letters: RegExp;
  /** Matches the script's most common letters, in lower case. */
  readonly common: RegExp;
  /** Least share of the script's most common letters among all letters: about half of their share in real texts. */
  readonly leastCommon: number;
  /** Whether a Latin letter never touches a letter of the script in real texts. */
  readonly isApartFromLatin: boolean;
  /** Letters that every text of the script has, with their least share (0..1) among its letters. */
  readonly always?: readonly [letters: RegExp, share: number];
  /** Matches a letter at a position where no text of the script has it. */
  readonly never?: RegExp;
}

const HAN_LETTERS = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}ー]/gu;
const PROFILES: readonly ScriptProfile[] = [
  {
    encodings: ['shift_jis', 'euc-jp'],
    letters: HAN_LETTERS,
    common: /[ぁ-んァ-ヶー]/g,
    leastCommon: 0.25,
    isApartFromLatin: false,
  },
  {
    encodings: ['gb18030'],
    letters: HAN_LETTERS,
    common:
      /[的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运]/g,
    leastCommon: 0.35,
    isApartFromLatin: false,
  },
  {
    encodings: ['big5'],
    letters: HAN_LETTERS,
    common:
      /[的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作里用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西斯月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活爾更別打女變四神總何電數安少報才結反受目太量再感建務做接必場件計管期市直德資命山金指克許統區保至隊形社便空決治展馬科司五基眼書非則聽白卻界達光放強即像難且權思王象完設式色路記南品住告類求據程北邊死張該交規萬取拉格望覺術領共確傳師觀清今切院讓識候帶導爭運]/g,
    leastCommon: 0.35,
    isApartFromLatin: false,
  },
  {
    encodings: ['euc-kr'],
    letters: HAN_LETTERS,
    common: /[이다는에의을가를은하고한지로도사인자기서리나아대어들시그정해일수부있보것여과만공조라제라를스주전장으]/g,
    leastCommon: 0.35,
    isApartFromLatin: false,
  },
  {
    encodings: ['windows-1251', 'koi8-u', 'ibm866', 'x-mac-cyrillic', 'iso-8859-5'],
    letters: /\p{sc=Cyrillic}/gu,
    common: /[оеаинтсрі]/g,
    leastCommon: 0.42,
    isApartFromLatin: true,
    always: [/[оа]/gi, 0.1],
  },
  {
    encodings: ['windows-1253', 'iso-8859-7'],
    letters: /\p{sc=Greek}/gu,
    common: /[αοιετσνάόίέή]/g,
    leastCommon: 0.45,
    isApartFromLatin: true,
    always: [/[άέήίόύώ]/g, 0.04],
  },
  {
    encodings: ['windows-1255', 'iso-8859-8-i'],
    letters: /\p{sc=Hebrew}/gu,
    common: /[יוהלאתרמ]/g,
    leastCommon: 0.4,
    isApartFromLatin: true,
    // The final form of a letter inside a word.
    never: /[ךםןףץ](?=[א-ת])/g,
  },
  {
    encodings: ['windows-1256', 'iso-8859-6'],
    letters: /\p{sc=Arabic}/gu,
    common: /[اليمونرتی]/g,
    leastCommon: 0.45,
    isApartFromLatin: true,
  },
  {
    encodings: ['windows-874'],
    letters: /\p{sc=Thai}/gu,
    common: /[านรอกเงมยลวด่้ี]/g,
    leastCommon: 0.45,
    isApartFromLatin: true,
    // A mark that stands on no consonant.
    never: /(?<![ก-ฮ\u0e31\u0e34-\u0e3a\u0e47-\u0e4e])[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]/g,
  },
];

// ── By the commonest letters ─────────────────────────────────────────────────────────────────────────────────────────

function guessByScript(sample: Uint8Array): string | undefined {
  let best: { readonly encoding: string; readonly fit: number } | undefined;
  for (const profile of PROFILES) {
    for (const encoding of profile.encodings) {
      const fit = fitOf(decodeSample(encoding, sample), profile);
      if (fit >= 1 && fit > (best?.fit ?? 0)) best = { encoding, fit };
    }
  }
  return best?.encoding;
}

/**
 * Returns how well a decoded text fits a script: the share of the script's most common letters, divided by the
 * profile's `leastCommon` so that scripts can be compared, minus the share of misplaced characters. A value of 1 or
 * more is a good fit; it is 0 if the text cannot be in this script.
 */
function fitOf(text: string, profile: ScriptProfile): number {
  const beyondAscii = count(text, LETTERS_AND_SYMBOLS);
  const letters = count(text, profile.letters);
  if (letters < FEWEST_LETTERS || beyondAscii - letters > MAX_MISPLACED * beyondAscii) return 0;
  if (count(text, IMPOSSIBLE) > 0 || count(text, /\p{Lu}/gu) > MAX_CAPITALS * letters) return 0;
  if (profile.isApartFromLatin && count(text, SCRIPTS_MIXED) > MAX_MISPLACED * letters) return 0;
  if (profile.never !== undefined && count(text, profile.never) > MAX_SLIPS * letters) return 0;
  const [required, share] = profile.always ?? [/^/, 0];
  if (count(text, required) < share * letters) return 0;
  // Encodings of one script may differ in a letter or two, which read as signs or capitals in the wrong one.
  const slips = (count(text, SIGN_AT_LETTER) + count(text, CAPITAL_INSIDE)) / letters;
  return slips > MAX_SLIPS ? 0 : count(text.toLowerCase(), profile.common) / letters / profile.leastCommon - slips;
}

/**
 * Matches characters beyond ASCII, but not punctuation and signs that texts in all scripts have, and no combining
 * marks.
 */
const LETTERS_AND_SYMBOLS =
  /[^\0-\x7f\u00a0\u00a9\u00ab\u00ad-\u00ae\u00b0\u00b7\u00bb\u2010-\u2027\u2030-\u203a\u20ac\u2116\u2122\u25a0-\u25ff\u3000-\u3003\u3005-\u301f\u30fb\uff01-\uff5e\p{M}]/gu;
const IMPOSSIBLE = /[\ufffd\x80-\x9f\p{Co}\p{Cn}]/gu;
const CAPITAL_INSIDE = /\p{Ll}\p{Lu}/gu;
const SCRIPTS_MIXED = /[A-Za-z](?:[^\0-\x7f\P{L}]|\p{M})|(?:[^\0-\x7f\P{L}]|\p{M})[A-Za-z]/gu;
/** Matches a sign next to a word, with or without a blank between them. A sign after a digit does not match. */
const SIGN_AT_LETTER = /(?<=\p{L} ?)(?![№©®™°])[^\0-\x7f\P{S}]|(?<!\d ?)(?![№©®™°])[^\0-\x7f\P{S}](?= ?\p{L})/gu;
/**
 * Greatest share of misplaced characters among the letters beyond ASCII: signs next to words, capitals inside words, or
 * letters at positions where the script never has them.
 */
const MAX_SLIPS = 0.01;
/**
 * Greatest number of capitals in a text, as a share of its letters of the guessed script. A wrong encoding can turn the
 * letters of another script into capitals only.
 */
const MAX_CAPITALS = 0.4;

// ── Latin scripts ────────────────────────────────────────────────────────────────────────────────────────────────────

async function guessLatin(sample: Uint8Array): Promise<string | undefined> {
  const { default: chardet } = await import('chardet');
  const guesses = chardet
    .analyse(sample)
    .filter(({ name }) => LATIN.test(name))
    .map(({ name, confidence }) => ({ encoding: name, confidence, text: decodeSample(name, sample) }));
  const best = guesses[0];
  if (best === undefined || best.confidence < MIN_CONFIDENCE || !readsLikeLatin(best.text)) return undefined;
  const rivals = guesses.filter(({ text }) => text !== best.text && readsLikeLatin(text));
  const lead = best.confidence - (rivals[0]?.confidence ?? 0);
  const isFew = count(best.text, ACCENTED) < FEW_ACCENTED;
  // chardet tells windows-1250 from ISO-8859-2 by bytes that a short text need not have.
  if (isFew && best.encoding === 'ISO-8859-2' && decodeSample('windows-1250', sample) !== best.text) return undefined;
  return lead < (isFew && rivals.length > 0 ? MIN_LEAD_OF_FEW : MIN_LEAD) ? undefined : best.encoding;
}

const LATIN = /^(?:ISO-8859-[129]|windows-125[0247])$/;
const ACCENTED = /[^\0-\x7f\P{sc=Latin}]/gu;
/**
 * Greatest share of accented letters among all letters. Vietnamese, which has the most, stays below it; Greek or
 * Cyrillic text that is decoded in a Latin encoding has only accented letters.
 */
const MAX_ACCENTED = 0.45;

/**
 * Greatest share of š and ž among the accented letters of a text that has è. A greater share means that the encoding is
 * wrong.
 */
const MAX_CARONS = 0.2;

function readsLikeLatin(text: string): boolean {
  const beyondAscii = count(text, /[^\0-\x7f]/gu);
  const accented = count(text, ACCENTED);
  const misplaced = count(text, SYMBOL_INSIDE) + count(text, CAPITAL_INSIDE_ACCENTED);
  if (count(text, IMPOSSIBLE) > 0 || misplaced > MAX_MISPLACED * beyondAscii) return false;
  // Croatian and Slovene in windows-1250 have è and these two letters where windows-1252 has them, and no trigrams in
  // chardet.
  if (/è/.test(text) && count(text, /[šž]/gi) > MAX_CARONS * accented) return false;
  return accented <= MAX_ACCENTED * count(text, /\p{sc=Latin}/gu);
}

/**
 * Matches a symbol inside a word that does not belong there; apostrophes, hyphens, middle dots and ordinal signs do.
 */
const SYMBOL_INSIDE = /(?<=\p{L})[^\0-\x7f\p{L}\p{M}\u00a0\u00ad\u00b7\u2010-\u2015\u2019\u2018\u2026](?=\p{L})/gu;
/** Matches a capital after a small letter if one of the two letters has an accent. In camelCase names neither has. */
const CAPITAL_INSIDE_ACCENTED = /(?<=\p{Ll})[^\0-\x7f\P{Lu}]|(?<=[^\0-\x7f\P{Ll}])[A-Z]/gu;

// ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Decodes the beginning of a text. A character that is cut in two at its end is left out. */
function decodeSample(encoding: string, sample: Uint8Array): string {
  return new TextDecoder(encoding).decode(sample, { stream: true });
}

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
