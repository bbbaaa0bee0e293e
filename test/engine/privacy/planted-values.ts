/**
 * Makes sensitive values that are valid by their checks and belong to nobody, from a seed. Prefixes of keys are joined
 * when a value is made, so that no file holds what a scanner of secrets takes for a key.
 */

import type { SensitiveKind } from '../../../src/engine/types.ts';

/** A value to plant, and the kind that it is. */
export interface Planted {
  readonly kind: SensitiveKind;
  readonly value: string;
  /** Text that must stand in front of the value, where only that says what the value is; '' for none. */
  readonly before: string;
}

type Random = () => number;

const LOWER = 'abcdefghijklmnopqrstuvwxyz';
const UPPER = LOWER.toUpperCase();
const DIGITS = '0123456789';
const HEX = '0123456789abcdef';
const BASE62 = LOWER + UPPER + DIGITS;

/** Makes the values of all kinds, `rounds` of each form. `random` returns numbers in 0..1, 1 excluded. */
export function plantedValues(random: Random, rounds: number): Planted[] {
  const pick = <T>(from: ArrayLike<T>): T => from[Math.floor(random() * from.length)]!;
  const some = (alphabet: string, length: number) => Array.from({ length }, () => pick(alphabet)).join('');
  const forms = [...keyForms(some, pick), ...contextForms(some, pick), ...personalForms(some, pick)];
  return Array.from({ length: rounds }, () => forms.map((form) => ({ before: '', ...form() }))).flat();
}

type Some = (alphabet: string, length: number) => string;
type Pick = <T>(from: ArrayLike<T>) => T;
type Form = () => Omit<Planted, 'before'> & { readonly before?: string };

function keyForms(some: Some, pick: Pick): Form[] {
  const join = (...parts: string[]) => parts.join('');
  const keys: [SensitiveKind, () => string][] = [
    ['aws_access_key', () => join('AK', 'IA', some(`${UPPER}234567`, 16))],
    ['google_key', () => join('AI', 'za', some(`${BASE62}_`, 35))],
    ['google_key', () => join('GOC', 'SPX-', some(BASE62, 28))],
    ['azure_key', () => join(some(BASE62, 3), '8', 'Q~', some(BASE62, 34))],
    ['anthropic_key', () => join('sk-', 'ant-', 'api03-', some(`${BASE62}_`, 93), 'AA')],
    ['openai_key', () => join('sk-', 'proj-', some(`${BASE62}_`, 124))],
    ['openai_key', () => join('sk-', some(BASE62, 48))],
    ['github_key', () => join('gh', pick(['p', 'o', 's']), '_', some(BASE62, 36))],
    ['github_key', () => join('github', '_pat_', some(BASE62, 22), '_', some(BASE62, 59))],
    ['gitlab_key', () => join('gl', 'pat-', some(`${BASE62}_`, 20))],
    ['slack_key', () => join('xo', 'xb-', some(DIGITS, 12), '-', some(DIGITS, 13), '-', some(BASE62, 24))],
    ['stripe_key', () => join('sk', '_live_', some(BASE62, 24))],
    ['twilio_key', () => join('S', 'K', some(HEX, 32))],
    ['sendgrid_key', () => join('S', 'G.', some(BASE62, 22), '.', some(BASE62, 43))],
    ['npm_key', () => join('np', 'm_', some(BASE62, 36))],
    ['pypi_key', () => join('py', 'pi-Ag', 'EIcHlwaS5vcmc', some(BASE62, 140))],
    ['huggingface_key', () => join('h', 'f_', some(LOWER + UPPER, 34))],
    ['digitalocean_key', () => join('do', 'p_v1_', some(HEX, 64))],
    ['telegram_key', () => join(some('123456789', 10), ':A', 'A', some(BASE62, 33))],
    ['discord_key', () => join('M', some(BASE62, 23), '.', some(BASE62, 6), '.', some(BASE62, 38))],
    ['shopify_key', () => join('shp', 'at_', some(HEX, 32))],
    ['square_key', () => join('sq0', 'atp-', some(BASE62, 22))],
    ['mailgun_key', () => join('ke', 'y-', some(HEX, 32))],
    ['service_key', () => join('cair', 'n_', some(HEX, 16), '_', some(BASE62, 43))],
    ['api_key', () => join('gs', 'k_', some(BASE62, 52))],
    ['jwt', () => jwt(some)],
    ['private_key', () => pem(some, pick)],
  ];
  return keys.map(([kind, make]): Form => () => ({ kind, value: make() }));
}

function jwt(some: Some): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ sub: some(DIGITS, 10), iat: 1_700_000_000 })}.${some(BASE62, 43)}`;
}

function pem(some: Some, pick: Pick): string {
  const name = `${pick(['RSA ', 'EC ', 'OPENSSH ', ''])}PRIVATE ${'KEY'}`;
  const lines = Array.from({ length: 12 }, () => some(`${BASE62}+/`, 64));
  return `-----BEGIN ${name}-----\n${lines.join('\n')}\n-----END ${name}-----`;
}

/** Makes values whose kind shows only in the text in front of them. */
function contextForms(some: Some, pick: Pick): Form[] {
  const password = () => some(BASE62, 9) + pick('!#%&+*') + some(DIGITS, 2) + some(LOWER, 2);
  return [
    () => ({ kind: 'aws_secret_key', value: some(BASE62, 40), before: 'AWS_SECRET_ACCESS_KEY=' }),
    () => ({ kind: 'datadog_key', value: some(HEX, 32), before: 'DD_API_KEY: ' }),
    () => ({ kind: 'cloudflare_key', value: some(BASE62, 40), before: 'CLOUDFLARE_API_TOKEN=' }),
    () => ({ kind: 'authorization', value: some(BASE62, 32), before: 'Authorization: Bearer ' }),
    () => ({
      kind: 'authorization',
      value: Buffer.from(`svc:${some(BASE62, 14)}`).toString('base64'),
      before: 'authorization: Basic ',
    }),
    () => ({ kind: 'api_key', value: some(BASE62, 32), before: `"${pick(['api_key', 'clientSecret', 'token'])}": "` }),
    () => ({
      kind: 'url_password',
      value: some(BASE62, 14),
      before: `${pick(['postgres', 'mysql', 'mongodb+srv', 'rediss', 'amqp'])}://app:`,
    }),
    () => ({ kind: 'password', value: password(), before: pick(['password=', 'DB_PASSWORD: ', 'pwd = "']) }),
    () => ({
      kind: 'password',
      value: password(),
      before: pick(['Das Passwort lautet ', 'mot de passe : ', '密码是']),
    }),
  ];
}

function personalForms(some: Some, pick: Pick): Form[] {
  const digits = (length: number) => some(DIGITS, length);
  const area = () => pick('23456789') + digits(2);
  return [
    () => ({ kind: 'card', value: card(pick(['4', '51', '2221', '62', '6011']), 16, some) }),
    () => ({ kind: 'card', value: card('37', 15, some) }),
    () => ({ kind: 'card', value: card('4', 16, some).replace(/(\d{4})(?=\d)/g, '$1 ') }),
    () => ({ kind: 'iban', value: iban('DE', digits(18)) }),
    () => ({ kind: 'iban', value: iban('GB', some(UPPER, 4) + digits(14)).replace(/(.{4})(?=.)/g, '$1 ') }),
    () => ({ kind: 'iban', value: iban('FR', digits(23)) }),
    () => ({
      kind: 'email',
      value: `${some(LOWER, 6)}.${some(LOWER, 8)}@${some(LOWER, 9)}.${pick(['com', 'de', 'fr', 'co.uk'])}`,
    }),
    () => ({ kind: 'phone', value: `+49 30 ${some('123456789', 8)}` }),
    () => ({ kind: 'phone', value: `+1 (${area()}) ${area()}-${digits(4)}` }),
    () => ({ kind: 'phone', value: `${area()}-${pick('23456789')}${pick('46789')}${digits(1)}-${digits(4)}` }),
    () => ({ kind: 'phone', value: `0${pick('1234567')} ${digits(2)} 42 ${digits(2)} 68` }),
    () => ({ kind: 'phone', value: `0171/${some('123456789', 8)}`, before: 'Handy: ' }),
    () => ({ kind: 'phone', value: `13${digits(9)}`, before: '联系电话是' }),
    () => ({
      kind: 'us_ssn',
      value: `${pick('12345')}${digits(1)}${pick('123456789')}-${pick('1234')}5-${pick('6789')}${digits(3)}`,
    }),
    () => ({
      kind: 'ip_address',
      value: `93.${pick(['184', '42', '7'])}.${pick(['216', '88'])}.${pick(['34', '201'])}`,
    }),
    () => ({ kind: 'ip_address', value: `2a00:${some(HEX, 4)}:${some(HEX, 4)}:1::${some(HEX, 4)}` }),
    () => ({
      kind: 'mac_address',
      value: Array.from({ length: 6 }, () => pick('0123456789') + pick('abcdef')).join(':'),
    }),
  ];
}

function card(prefix: string, length: number, some: Some): string {
  const open = prefix + some(DIGITS, length - prefix.length - 1);
  const sum = [...`${open}0`].reverse().reduce((total, sign, at) => {
    const digit = Number(sign) * (at % 2 === 1 ? 2 : 1);
    return total + (digit > 9 ? digit - 9 : digit);
  }, 0);
  return open + String((10 - (sum % 10)) % 10);
}

function iban(country: string, account: string): string {
  const number = [...`${account}${country}00`].map((sign) => Number.parseInt(sign, 36)).join('');
  return `${country}${String(98n - (BigInt(number) % 97n)).padStart(2, '0')}${account}`;
}

/** Texts into which a value is put at `{}`. */
export const SURROUNDINGS = [
  'Please remember that {} is what we use for staging, and tell Ben.',
  'export SETTING="{}"',
  "const client = connect({ region: 'eu', value: '{}' });",
  '2026-03-04T10:22:31Z INFO worker-3 request failed: {} (attempt 2 of 5)',
  '{"level":"warn","field":"{}","code":17}',
  'ana: hey, can you use {}?\nben: sure, thanks!',
  'Bitte merk dir {}, das brauchen wir für den Test am Dienstag.',
  'Pour la facture, utilisez {} et prévenez Chloé.',
  '请记住 {} ,明天的会议要用。',
  '| name | value |\n| --- | --- |\n| ours | {} |',
  '- first: nothing\n- second: {}\n- third: nothing',
  '    curl -H "x-value: {}" http://localhost:8080/v1',
  '{}',
  'Запомни: {} и больше ничего.',
] as const;
