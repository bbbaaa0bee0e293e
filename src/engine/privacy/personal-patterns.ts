import { isPublicAddress } from '../documents/public-address.ts';
import { passesLuhn, passesMod97 } from './checks.ts';
import { wholeIf, type SensitivePattern } from './pattern.ts';

/** Lengths of IBANs by country, from the SWIFT registry of IBAN formats. */
const IBAN_LENGTHS: ReadonlyMap<string, number> = new Map(
  (
    'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ' +
    'ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 ' +
    'LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 ' +
    'PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30'
  )
    .split(' ')
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
);

/** Returns the length of the IBAN at the start of a candidate, spaces included; 0 if no IBAN begins there. */
function lengthOfIban(candidate: string): number {
  const wanted = IBAN_LENGTHS.get(candidate.slice(0, 2));
  if (wanted === undefined) return 0;
  let iban = '';
  let at = 0;
  for (; at < candidate.length && iban.length < wanted; at += 1) if (candidate[at] !== ' ') iban += candidate[at];
  const isWhole = iban.length === wanted && !/[A-Za-z0-9]/.test(candidate[at] ?? '');
  return isWhole && passesMod97(iban) ? at : 0;
}

/** Card numbers that payment providers publish for tests, without spaces. */
const TEST_CARDS = new Set(
  (
    '4111111111111111 4242424242424242 4012888888881881 4000056655665556 5555555555554444 5105105105105100 ' +
    '2223003122003222 5200828282828210 378282246310005 371449635398431 6011111111111117 6011000990139424 ' +
    '3056930009020004 36227206271667 30569309025904 38520000023237 3530111333300000 3566002020360505 6200000000000005'
  ).split(' '),
);

/** Forms of the numbers that card issuers use: first digits and lengths. */
const CARD =
  /^(?:4\d{15}|4\d{18}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|6(?:011|4[4-9]\d|5\d\d)\d{12}|3(?:0[0-5]|[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14}|(?:50(?:18|20|38)|6304|6759|676[1-3])\d{12})$/;
/** Ways to write a card number: without gaps, or in groups that are separated by the same sign. */
const CARD_GROUPS = /^(?:\d{14,16}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{4}([ -])\d{6}\2\d{4,5})$/;

function isCard(candidate: string): boolean {
  const digits = candidate.replace(/[ -]/g, '');
  return (
    CARD_GROUPS.test(candidate) &&
    CARD.test(digits) &&
    passesLuhn(digits) &&
    !TEST_CARDS.has(digits) &&
    new Set(digits).size > 3
  );
}

/**
 * Matches domains that are reserved (RFC 2606, RFC 6761) and endings of files rather than of hosts; addresses with them
 * count as no e-mail addresses.
 */
const NO_MAIL_DOMAIN =
  /(?:^|[@.])(?:example\.(?:com|org|net|edu)|[^.]*\.?(?:example|test|invalid|localhost|local|png|jpe?g|gif|svg|webp|avif|js|mjs|cjs|ts|tsx|jsx|css|scss|html?|json|md|txt|ya?ml|toml|sqlite|py|rb|go|rs|java|sh|lock|zip|gz|exe|dll|so|service))$/i;

/** Matches names before the `@` that belong to a service or a placeholder rather than to a person. */
const NO_MAIL_NAME = /^(?:git|svn|hg|ssh|npm|root|user|username|name|you|your[._-]?(?:name|email)|someone|foo|bar)@/i;

function isMailAddress(address: string): boolean {
  return !NO_MAIL_NAME.test(address) && !NO_MAIL_DOMAIN.test(address) && !address.includes('..');
}

/** Country calling codes of the ITU, E.164. */
const CALLING_CODES = new Set(
  (
    '1 7 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 ' +
    '86 90 91 92 93 94 95 98 211 212 213 216 218 220 221 222 223 224 225 226 227 228 229 230 231 232 233 234 235 236 ' +
    '237 238 239 240 241 242 243 244 245 248 249 250 251 252 253 254 255 256 257 258 260 261 262 263 264 265 266 267 ' +
    '268 269 290 291 297 298 299 350 351 352 353 354 355 356 357 358 359 370 371 372 373 374 375 376 377 378 380 381 ' +
    '382 383 385 386 387 389 420 421 423 500 501 502 503 504 505 506 507 508 509 590 591 592 593 594 595 596 597 598 ' +
    '599 670 672 673 674 675 676 677 678 679 680 681 682 683 685 686 687 688 689 690 691 692 850 852 853 855 856 880 ' +
    '886 960 961 962 963 964 965 966 967 968 970 971 972 973 974 975 976 977 992 993 994 995 996 998'
  ).split(' '),
);

function digitsOf(text: string): string {
  return text.replace(/\D/g, '');
}

function isInternationalPhone(candidate: string): boolean {
  const digits = digitsOf(candidate);
  if (digits.length < 9 || digits.length > 15 || new Set(digits).size < 4 || isFictional(digits)) return false;
  return [1, 2, 3].some((length) => CALLING_CODES.has(digits.slice(0, length)));
}

/** Whether a North American number is one of 555-0100 to 555-0199, which are reserved for fiction. */
function isFictional(digits: string): boolean {
  return /^1?\d{3}55501\d\d$/.test(digits);
}

function isNationalPhone(candidate: string): boolean {
  const digits = digitsOf(candidate);
  return digits.length >= 8 && digits.length <= 13 && new Set(digits).size > 2 && !isFictional(digits);
}

/** Matches words after which a number counts as a telephone number. */
const PHONE_WORD =
  /(?:tele)?phone(?: number)?|tel|fax|mobile|cell|call(?: me| us| him| her)?(?: at| on)?|whatsapp|telefon(?:nummer)?|handy(?:nummer)?|mobil(?:nummer)?|rufnummer|t[ée]l[ée]phone|portable|tel[ée]fono|celular|m[óo]vil|telefone|telefono|cellulare|телефон|电话|電話|手机|手機|联系方式|携帯/;

/**
 * Whether an IPv4 address is public and has a part of at least 32. Four smaller parts are most often a version number.
 */
function isMachineIpv4(address: string): boolean {
  // Four small numbers are a version, a section or a date far more often than an address.
  return Math.max(...address.split('.').map(Number)) >= 32 && !/(?:^|\.)0\d/.test(address) && isPublicAddress(address);
}

/**
 * Whether a MAC address may be a device's: it has a letter and a digit, more than three different signs, and is not
 * from the range for documentation.
 */
function isMacAddress(address: string): boolean {
  const hex = address.toLowerCase().replace(/[^0-9a-f]/g, '');
  return /[a-f]/.test(hex) && /\d/.test(hex) && new Set(hex).size > 3 && !hex.startsWith('00005e0053');
}

/** US social security numbers that were published, so that they identify nobody. */
const PUBLISHED_SSNS = new Set(['078-05-1120', '219-09-9999', '123-45-6789', '457-55-5462', '111-22-3333']);

/** Patterns of values that identify a person or a person's machine. */
export const PERSONAL_PATTERNS: readonly SensitivePattern[] = [
  {
    kind: 'email',
    hint: /@/,
    pattern:
      /(?<![\p{Script=Latin}\p{Script=Cyrillic}\d._%+@/:-])[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,5}[A-Za-z]{2,24}(?![A-Za-z0-9_@-])/gu,
    lengthOf: wholeIf(isMailAddress),
  },
  {
    kind: 'email',
    hint: /mailto:|(?:mail|contact|from|to|cc|von|an|à|de):/i,
    pattern:
      /(?<before>(?<![A-Za-z])(?:mailto|e-?mail|mail|contact|from|to|cc|von|an|de):)[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,5}[A-Za-z]{2,24}(?![A-Za-z0-9_@-])/gi,
    lengthOf: wholeIf(isMailAddress),
  },
  {
    kind: 'iban',
    hint: /[A-Z]{2}\d{2} ?[A-Z0-9]{4}/,
    pattern: /(?<![A-Za-z0-9_-])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}/g,
    lengthOf: lengthOfIban,
  },
  {
    kind: 'card',
    hint: /\d{4}[ -]?\d{4}/,
    pattern: /(?<![\w.+-]|[\w.]-|\d )\d{4}(?:[ -]?\d){10,15}(?![\w-]|[ .]\d)/g,
    lengthOf: wholeIf(isCard),
  },
  {
    kind: 'us_ssn',
    hint: /\d-\d\d-\d/,
    pattern: /(?<![\w.-])(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-]|\.\d)/g,
    lengthOf: wholeIf((value) => !PUBLISHED_SSNS.has(value) && new Set(value).size > 3),
  },
  {
    kind: 'phone',
    hint: /\+ ?[1-9]|00[1-9]/,
    pattern: /(?<![\w+.=(-])\+[1-9](?:\)?[ ./-]{0,2}\(?\d){7,17}(?!\w)/g,
    lengthOf: wholeIf(isInternationalPhone),
  },
  {
    // North America: 212-555-2368, (212) 555-2368, 212.555.2368.
    kind: 'phone',
    hint: /\d{3}[-.]\d{4}/,
    pattern:
      /(?<![\w.+/-]|\d )(?:1[-.])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}(?=([-.]))\1)[2-9]\d{2}[-.]\d{4}(?![\w/-]|\.\d)/g,
    lengthOf: wholeIf(isNationalPhone),
  },
  {
    // France: 01 42 68 53 00; Russia: 8 (495) 123-45-67; Brazil: (11) 91234-5678; Japan: 090-1234-5678.
    kind: 'phone',
    hint: /\d[ .]\d\d[ .]\d\d|\d-\d\d|\d{4}-\d{4}/,
    pattern:
      /(?<![\w.+/(-]|\d )(?:0[1-9](?:([ .])\d\d)(?:\1\d\d){3}|8 ?\(\d{3}\) ?\d{3}-\d\d-\d\d|\(\d\d\) ?9?\d{4}-\d{4}|0[5789]0-\d{4}-\d{4})(?![\w/-]|[ .]\d)/g,
    lengthOf: wholeIf(isNationalPhone),
  },
  {
    // Any other form, after a word that says what it is.
    kind: 'phone',
    hint: /\d{3}/,
    pattern: new RegExp(
      // eslint-disable-next-line max-len -- one pattern
      `(?<before>(?<![A-Za-z])(?:${PHONE_WORD.source})(?:["']|\\.| |是|为|為|は|：|:|=|-|#|number|nr|no|unter|ist|is|at|to|au|al|est|es|é){0,6})\\(?\\d(?:\\)?[ ./-]{0,2}\\d){3,20}(?![\\w-])`,
      'gi',
    ),
    lengthOf: wholeIf(
      (value) => isNationalPhone(value) && !/^\d{4}-\d\d-\d\d|^\d\d?\.\d\d?\.\d{4}|^\d+\.\d+$/.test(value),
    ),
  },
  {
    kind: 'ip_address',
    hint: /\d\.\d{1,3}\.\d/,
    pattern:
      /(?<![\w.^~=<>§%-]|[a-z]\/|\d\/|\bv(?:ersion)? ?|\b[Vv]ersions? |\b[Rr]elease |\b[Bb]uild |\b[Ss]ection |\b[Cc]hapter )\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w-]|\.\d)/g,
    lengthOf: wholeIf(isMachineIpv4),
  },
  {
    kind: 'ip_address',
    hint: /[23][0-9a-f]{3}:[0-9a-f]{0,4}:/i,
    pattern: /(?<![\w:.-])[23][0-9a-f]{3}:[0-9a-f:]{4,34}(?![\w:])/gi,
    lengthOf: wholeIf(isPublicAddress),
  },
  {
    kind: 'mac_address',
    hint: /[0-9a-f]{2}[:-][0-9a-f]{2}[:-]/i,
    pattern: /(?<![\w:-])[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2}){4}(?![\w:-])/gi,
    lengthOf: wholeIf(isMacAddress),
  },
];
