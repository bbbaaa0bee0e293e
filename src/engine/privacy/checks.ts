/** Checks that distinguish a sensitive value from text of the same shape. All are linear in the length of the value. */

/** Whether the last digit of a number is its check digit by Luhn's formula. `digits` must have decimal digits only. */
export function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let at = digits.length - 1, isDoubled = false; at >= 0; at -= 1, isDoubled = !isDoubled) {
    const digit = Number(digits[at]) * (isDoubled ? 2 : 1);
    sum += digit > 9 ? digit - 9 : digit;
  }
  return sum % 10 === 0;
}

/**
 * Whether an IBAN without spaces has the remainder 1 by ISO 7064, MOD 97-10, as a valid one has. It must have A-Z and
 * digits only.
 */
export function passesMod97(iban: string): boolean {
  let remainder = 0;
  for (const sign of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(sign, 36);
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97;
  }
  return remainder === 1;
}

/** Returns Shannon's entropy of a text's characters, in bits per character; 0 for the empty text. */
export function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  let length = 0;
  for (const sign of text) {
    counts.set(sign, (counts.get(sign) ?? 0) + 1);
    length += 1;
  }
  let bits = 0;
  for (const count of counts.values()) bits -= (count / length) * Math.log2(count / length);
  return bits;
}

/** Matches words and signs by which a value is recognised as a placeholder, such as `example` or `***`. */
const PLACEHOLDER =
  /example|sample|placeholder|change_?me|replace_?me|redacted|dummy|your[-_]|x{5,}|\*{3,}|\.{3}|…|<|\$\{|\{\{|%\(|0{8}|1234567|abcdef/i;

/**
 * Whether a value looks like a placeholder of documentation and not like a real one, such as AWS's keys that end with
 * EXAMPLE.
 */
export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER.test(value);
}

/**
 * Whether a value is random enough to be a key: at least 16 characters with a letter and a digit, no placeholder, and
 * an entropy of at least 3 bits a character (3.2 from 24 characters on).
 */
export function looksRandom(value: string): boolean {
  return (
    value.length >= 16 &&
    /[A-Za-z]/.test(value) &&
    /\d/.test(value) &&
    !isPlaceholder(value) &&
    entropyOf(value) >= (value.length >= 24 ? 3.2 : 3)
  );
}

/**
 * Words that stand for a password in examples, or that are common passwords in tests; they are not reported as secrets.
 */
const COMMON_PASSWORDS = new Set([
  ...[
    'password',
    'passwort',
    'passwd',
    'secret',
    'postgres',
    'undefined',
    'required',
    'optional',
    'hidden',
    'disabled',
  ],
  ...['mysql', 'root', 'admin', 'user', 'guest', 'test', 'redis', 'mongo', 'minio', 'default', 'none', 'null', 'empty'],
]);

/**
 * Whether a value that a text calls a password may be a real password: at least 8 characters of two or more kinds
 * (lower case, capitals, digits, other signs), and not a placeholder, a common password, a name in code, a path, a URL,
 * a version, a time or only words; one word with one or two digits at its end counts as only words. Its characters must
 * also have an entropy of at least 2.5 bits each.
 */
export function looksLikePassword(value: string): boolean {
  if (value.length < 8 || isPlaceholder(value) || COMMON_PASSWORDS.has(value.toLowerCase())) return false;
  // Names in code: config.password1, process.env.DB_PASS, tokens[0], getSecret2(x), OM_API_KEY, --flag.
  if (/^[$@]?[A-Za-z_][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+$/.test(value)) return false;
  if (/[[(]/.test(value) || /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/.test(value) || /^[-$%@/.~]/.test(value)) return false;
  if (/^[\d.:/T-]+Z?$/.test(value) || /^v?\d+\.\d/.test(value) || value.includes('://')) return false;
  const classes = [/[a-z]/, /[A-Z]/, /\d/, /[^A-Za-z0-9]/].filter((kind) => kind.test(value)).length;
  const isWordsOnly = /^[A-Za-z]+(?:[-_'’][A-Za-z]+)*$/.test(value) || /^[a-z]+[-_]?\d{1,2}$/i.test(value);
  return classes >= 2 && !isWordsOnly && entropyOf(value) >= 2.5;
}

/** Whether a token is a JSON Web Token: its first part is base64url of a JSON object with the key `alg`. */
export function isJwt(token: string): boolean {
  try {
    const header: unknown = JSON.parse(Buffer.from(token.slice(0, token.indexOf('.')), 'base64url').toString('utf8'));
    return typeof header === 'object' && header !== null && 'alg' in header;
  } catch {
    return false;
  }
}
