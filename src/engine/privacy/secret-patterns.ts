import { entropyOf, isJwt, isPlaceholder, looksLikePassword, looksRandom } from './checks.ts';
import { wholeIf, type SensitivePattern } from './pattern.ts';
import type { SensitiveKind } from '../types.ts';

/**
 * Makes the pattern of a provider's API key, which is recognised by its beginning. A match is no key if a letter, a
 * digit, `_` or `-` is next to it, if it is a placeholder, or if its entropy is under 2.8 bits a character.
 * @param hint expression that a text with such a key always matches, for a quick test
 * @param shape expression of the key itself
 */
function key(kind: SensitiveKind, hint: RegExp, shape: RegExp): SensitivePattern {
  const pattern = new RegExp(`(?<![A-Za-z0-9_-])(?:${shape.source})(?![A-Za-z0-9_-])`, 'g');
  return { kind, hint, pattern, lengthOf: wholeIf((value) => !isPlaceholder(value) && entropyOf(value) >= 2.8) };
}

/** Source of a regular expression for the words that may precede a variable's name, as in `MY_APP_API_KEY`. */
const WORDS_BEFORE = '(?:[A-Za-z0-9]{1,24}[_-]){0,4}';

/**
 * Makes the pattern of a secret that is assigned to a name such as `api_key`: `name = "value"`, `name: value`, `"name":
 * "value"`, `--name=value`. A value that does not look random does not count.
 */
function assigned(kind: SensitiveKind, name: RegExp, value: RegExp): SensitivePattern {
  const before = `(?<![A-Za-z0-9])(?:${name.source})["'\`]?[ \\t]{0,3}(?::=|=>|[:=])[ \\t]{0,3}["'\`]?`;
  const pattern = new RegExp(`(?<before>${before})(?:${value.source})`, 'gi');
  // Words before the name are optional, and would be tried at each place of a text.
  const hint = new RegExp(name.source.replace(WORDS_BEFORE, ''), 'i');
  return { kind, hint, pattern, lengthOf: wholeIf(looksRandom) };
}

const PROVIDER_KEYS: readonly SensitivePattern[] = [
  key('aws_access_key', /A(?:KIA|SIA|BIA|CCA)/, /A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}/),
  assigned(
    'aws_secret_key',
    /aws[_-]?secret[_-]?(?:access[_-]?)?key|secret_?access_?key/,
    /[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])/,
  ),
  key('google_key', /AIza/, /AIza[\w-]{35}/),
  key('google_key', /GOCSPX-/, /GOCSPX-[\w-]{28}/),
  key('google_key', /ya29\./, /ya29\.[\w-]{30,300}/),
  key('azure_key', /[78]Q~/, /[\w~.]{3}[78]Q~[\w~.-]{31,34}/),
  assigned('azure_key', /AccountKey|SharedAccessKey/, /[A-Za-z0-9/+]{43,86}={1,2}/),
  key('anthropic_key', /sk-ant-/, /sk-ant-[a-z]{3,5}\d{2}-[\w-]{24,200}/),
  key('openai_key', /sk-/, /sk-(?:proj|svcacct|admin)-[\w-]{20,200}|sk-[A-Za-z0-9]{32,64}/),
  key('github_key', /gh[pousr]_/, /gh[pousr]_[A-Za-z0-9]{36,255}/),
  key('github_key', /github_pat_/, /github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}/),
  key(
    'gitlab_key',
    /gl[a-z]{2,5}-/,
    /gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt)-[\w-]{20,64}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?/,
  ),
  key('slack_key', /xox[abeoprs]-/, /xox[abeoprs]-[A-Za-z0-9-]{24,250}/),
  key('slack_key', /xapp-/, /xapp-\d-[A-Z0-9]{8,12}-\d{10,14}-[0-9a-f]{64}/),
  key(
    'slack_key',
    /hooks\.slack\.com/,
    /hooks\.slack\.com\/services\/T[A-Z0-9]{8,12}\/B[A-Z0-9]{8,12}\/[A-Za-z0-9]{20,28}/,
  ),
  key('stripe_key', /[sr]k_(?:live|test)_/, /[sr]k_(?:live|test)_[A-Za-z0-9]{16,247}/),
  key('stripe_key', /whsec_/, /whsec_[A-Za-z0-9+/=]{32,80}/),
  key('twilio_key', /SK[0-9a-f]{32}/, /SK[0-9a-f]{32}/),
  assigned('twilio_key', /twilio[_-]?auth[_-]?token/, /[0-9a-f]{32}(?![0-9a-f])/),
  key('sendgrid_key', /SG\./, /SG\.[\w-]{22}\.[\w-]{43}/),
  key('npm_key', /npm_/, /npm_[A-Za-z0-9]{36}/),
  key('pypi_key', /pypi-Ag/, /pypi-Ag[\w-]{60,250}/),
  key('huggingface_key', /hf_/, /hf_[A-Za-z0-9]{34,40}/),
  key('digitalocean_key', /do[opr]_v1_/, /do[opr]_v1_[0-9a-f]{64}/),
  key('telegram_key', /\d:AA/, /\d{8,10}:AA[\w-]{33}/),
  key('discord_key', /[MNO][\w-]{23,27}\./, /[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}/),
  key('discord_key', /\/api\/webhooks\//, /discord(?:app)?\.com\/api\/webhooks\/\d{17,20}\/[\w-]{60,80}/),
  key('shopify_key', /shp[acs][ats]_/, /shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}/),
  key('square_key', /sq0|EAAA/, /sq0(?:atp|csp|idp)-[\w-]{22,43}|EAAA[\w-]{60}/),
  key('mailgun_key', /key-[0-9a-f]{32}/, /key-[0-9a-f]{32}/),
  key('mailgun_key', /(?<![0-9a-f])[0-9a-f]{32}-/, /[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}/),
  assigned('datadog_key', /(?:dd|datadog)[_-]?(?:api|app|application)[_-]?key/, /[0-9a-f]{32,40}(?![0-9a-f])/),
  assigned('cloudflare_key', /(?:cf|cloudflare)[_-]?(?:global[_-]?)?api[_-]?(?:token|key)/, /[\w-]{37,45}(?![\w-])/),
  key('cloudflare_key', /v1\.0-[0-9a-f]/, /v1\.0-[0-9a-f]{24}-[0-9a-f]{146}/),
  key('service_key', /cairn_[0-9a-f]{16}_/, /cairn_[0-9a-f]{16}_[\w-]{43}/),
  key('api_key', /gsk_/, /gsk_[A-Za-z0-9]{48,56}/),
  key('api_key', /xai-/, /xai-[A-Za-z0-9]{60,90}/),
  key('api_key', /sk-or-v1-/, /sk-or-v1-[0-9a-f]{64}/),
  key('api_key', /pplx-/, /pplx-[A-Za-z0-9]{40,56}/),
  key('api_key', /r8_/, /r8_[A-Za-z0-9]{37}/),
  key('api_key', /hvs\./, /hvs\.[\w-]{24,200}/),
  key('api_key', /lin_api_/, /lin_api_[A-Za-z0-9]{40}/),
  key('api_key', /ntn_/, /ntn_[A-Za-z0-9]{43,50}/),
  key('api_key', /tskey-/, /tskey-[a-z]{3,8}-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{20,48}/),
  key('api_key', /AGE-SECRET-KEY-1/, /AGE-SECRET-KEY-1[A-Z0-9]{58}/),
];

/** Source of a regular expression for the first line of a PEM block with a private key, without its hyphens. */
const PEM_BEGIN = 'BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?';
/**
 * Source of a regular expression for a PEM block with a private key, to its last line or to the next row of hyphens, at
 * most 16,384 characters. An RSA key of 16,384 bits has 12,500.
 */
const PEM_BLOCK =
  `-----${PEM_BEGIN}-----(?:[^-]|-(?!----)){0,16384}` + `(?:-----${PEM_BEGIN.replace('BEGIN', 'END')}-----)?`;

/**
 * Returns the length of a private key's whole PEM block or, if the text ends within the block, of the lines that are
 * present; 0 if these have at most 100 characters.
 */
function lengthOfPem(candidate: string): number {
  if (candidate.endsWith('-----') && candidate.lastIndexOf('-----END ') > 0) return candidate.length;
  const body = /^-----[^-]{0,60}-----(?:\s|\\[nr]|[A-Za-z0-9+/=]{20,100})*/.exec(candidate)![0].trimEnd();
  return body.length > 100 ? body.length : 0;
}

const SECRET_NAME =
  /(?:[A-Za-z0-9]{1,24}[_-]){0,4}(?:password|passwd|passphrase|passwort|kennwort|mot[ _]de[ _]passe|contrase(?:ñ|n)a|senha|pwd|密码|密碼|パスワード)/;
const KEY_NAME =
  /(?:[A-Za-z0-9]{1,24}[_-]){0,4}(?:api[_-]?key|apikey|access[_-]?key|secret[_-]?key|client[_-]?secret|app[_-]?secret|auth[_-]?token|access[_-]?token|refresh[_-]?token|api[_-]?token|signing[_-]?secret|encryption[_-]?key|private[_-]?token|secret|token)/;

/**
 * Patterns of passwords, keys and other secrets. If two patterns match at one position, the earlier pattern determines
 * the kind.
 */
export const SECRET_PATTERNS: readonly SensitivePattern[] = [
  {
    kind: 'private_key',
    hint: /PRIVATE KEY/,
    pattern: new RegExp(PEM_BLOCK, 'g'),
    lengthOf: lengthOfPem,
  },
  ...PROVIDER_KEYS,
  {
    kind: 'jwt',
    hint: /ey[JKI]/,
    pattern: /(?<![\w.-])ey[JKI][\w-]{8,1000}\.[\w-]{4,8000}\.[\w-]{10,1500}(?![\w-])/g,
    lengthOf: wholeIf(isJwt),
  },
  {
    kind: 'url_password',
    hint: /:\/\/[^\s/]*@/,
    pattern:
      /(?<before>(?<![A-Za-z0-9])[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/?#@"'<>]{0,64}:)[^\s:/?#@"'<>]{3,128}(?=@[A-Za-z0-9[])/gi,
    lengthOf: wholeIf((value) => value.length >= 4 && !isPlaceholder(value) && !isNameOfPassword(value)),
  },
  {
    kind: 'authorization',
    hint: /authorization|bearer|basic/i,
    pattern:
      /(?<before>(?<![A-Za-z0-9])(?:proxy-)?authorization["'`]?[ \t]{0,3}[:=][ \t]{0,3}["'`]?(?:bearer|basic|token|apikey)[ \t]{1,3})[A-Za-z0-9._~+/=-]{8,2000}/gi,
    lengthOf: wholeIf((value) => !isPlaceholder(value) && /[A-Z0-9]/.test(value) && entropyOf(value) >= 2.8),
  },
  {
    kind: 'authorization',
    hint: /bearer/i,
    pattern: /(?<before>(?<![A-Za-z0-9])bearer[ \t]{1,3})[A-Za-z0-9._~+/=-]{20,2000}/gi,
    lengthOf: wholeIf(looksRandom),
  },
  {
    kind: 'password',
    hint: /pass|kennwort|contrase|senha|pwd|密[码碼]|パスワード/i,
    pattern: new RegExp(
      // eslint-disable-next-line max-len -- one pattern
      `(?<before>(?<![A-Za-z0-9_-])(?:${SECRET_NAME.source})["'\`]?(?:[ \\t]{0,3}(?::=|=>|[:=：])[ \\t]{0,3}|[ \\t]{1,2}(?:is|was|ist|lautet|war|est|es|é)[ \\t:]{1,3}|[是为為][ :：]{0,2})["'\`「“]?)[^\\s"'\`,;<>{}「」“”，。；]{8,128}`,
      'gi',
    ),
    lengthOf: (candidate) => {
      const value = candidate.replace(/[.!?)\]]{1,3}$/, '');
      return looksLikePassword(value) ? value.length : 0;
    },
  },
  assigned('api_key', KEY_NAME, /[A-Za-z0-9+/=_.~-]{16,200}(?![A-Za-z0-9+/=_~-])/),
];

/** Whether the password of a URL is a mere word such as `password`, as in `postgres://user:password@host`. */
function isNameOfPassword(value: string): boolean {
  return /^(?:pass(?:word|wd)?|pwd|secret|user|postgres|root|admin|test|token|key|cairn|redis|guest)$/i.test(value);
}
