/**
 * Finds, without a model, two statements that contradict each other, if their form shows it: one denies what the other
 * says; both give different values to an attribute that has only one; both put a thing into states that exclude each
 * other; or both give a thing another number, time or code. Every less obvious case is ignored.
 */
import { stem } from '../text/english-words.ts';
import { type PlainStatement, plainStatements, type PlainWord } from './plain-statement.ts';
import { areDifferent, typedValues, type TypedValue } from './typed-values.ts';

/**
 * Tells whether a text has a form in which `conflict` can find a contradiction. If not, no other text needs to be read
 * for a comparison.
 */
export function hasPlainForm(text: string): boolean {
  return plainStatements(text).length > 0;
}

/**
 * Tells whether two texts make statements that contradict each other; the order of the texts does not matter. The
 * caller passes only texts of one user, since "I" is taken for one person in both.
 */
export function conflict(one: string, other: string): boolean {
  const others = plainStatements(other);
  return plainStatements(one).some((a) => others.some((b) => areExclusive(a, b)));
}

function areExclusive(a: PlainStatement, b: PlainStatement): boolean {
  if (a.isDenied !== b.isDenied) return saySame(a.words, b.words);
  if (a.isDenied) return false;
  return differInValue(a.words, b.words) || differInState(a.words, b.words) || differInTyped(a.words, b.words);
}

/** Tells whether two statements are equal except for the endings of their words. */
function saySame(a: readonly PlainWord[], b: readonly PlainWord[]): boolean {
  const [one, other] = [a, b].map((words) => words.map(({ text }) => stem(text)).join(' '));
  return one === other;
}

// ── One thing, one value ─────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Attributes that have one value for each thing, such as a birthday. The last word before "is" names the attribute; an
 * attribute with "favourite" or "default" before it also has one value.
 */
const SINGLE = new Set(
  `birthday name surname nickname number email e-mail mail address password passphrase boss manager owner capital
   husband wife spouse fiancé mother father landlord type size height weight age deadline branch port host version
   budget salary timezone nationality`.split(/\s+/),
);
/** Attributes whose value is always a name. A value that is no name is ignored: "My boss is nice" names no boss. */
const NAMED = new Set(
  'name surname nickname boss manager owner capital husband wife spouse fiancé mother father landlord'.split(' '),
);
const PLACES = new Set(['office', 'headquarters', 'hq', 'home', 'house', 'flat', 'apartment', 'company', 'firm']);

/** A statement that gives the value of an attribute which has one value at a time, such as an owner or an office. */
interface SingleValue {
  /**
   * The thing and its attribute, as text: `my boss` for "My boss is Ann". Two statements are compared only if it is
   * equal.
   */
  readonly of: string;
  readonly value: readonly PlainWord[];
  readonly isPlace: boolean;
}

function singleValue(words: readonly PlainWord[]): SingleValue | null {
  const at = words.findIndex(({ text }) => /^(?:lives-in|works-for|is|am|are|work|works)$/u.test(text));
  if (at < 1) return null;
  const verb = words[at]!.text;
  const subject = words.slice(0, at);
  const rest = words.slice(at + 1);
  const of = subject.map(({ text }) => text).join(' ');
  const areNames = rest.length > 0 && rest.length <= 3 && rest.every(({ isName }) => isName);
  const last = subject.at(-1)!.text;
  if (verb === 'lives-in' || (verb === 'is' && rest[0]?.text === 'in' && PLACES.has(last))) {
    const value = verb === 'lives-in' ? rest : rest.slice(1);
    return value.length > 0 && value.every(({ isName }) => isName)
      ? { of: `${of} lives-in`, value, isPlace: true }
      : null;
  }
  if (verb === 'works-for') return areNames ? { of: `${of} works-for`, value: rest, isPlace: false } : null;
  if (verb.startsWith('work')) {
    const [as, article, ...job] = rest;
    const isJob = as?.text === 'as' && /^an?$/u.test(article?.text ?? '') && job.length > 0 && job.length <= 2;
    return isJob ? { of: `${of} works-as`, value: job, isPlace: false } : null;
  }
  if (verb !== 'is' || rest.length === 0 || rest.length > 3) return null;
  const isSingle = SINGLE.has(last) || subject.some(({ text }) => text === 'favourite' || text === 'default');
  if (!isSingle || (NAMED.has(last) && !areNames) || /^(?:an?|in|on|at|by|from|with|very)$/u.test(rest[0]!.text))
    return null;
  return { of, value: rest, isPlace: false };
}

function differInValue(a: readonly PlainWord[], b: readonly PlainWord[]): boolean {
  const [one, other] = [singleValue(a), singleValue(b)];
  if (one === null || other === null || one.of !== other.of || one.isPlace !== other.isPlace) return false;
  if (one.isPlace && isCountry(one.value) !== isCountry(other.value)) return false;
  if (one.value[0]!.isName !== other.value[0]!.isName) return false;
  // A number or a time is compared by what it means.
  if (typedValues(one.value).length > 0 || typedValues(other.value).length > 0) return false;
  return !isPart(one.value, other.value) && !isPart(other.value, one.value);
}

function isPart(part: readonly PlainWord[], whole: readonly PlainWord[]): boolean {
  return part.every(({ text }) => whole.some((word) => word.text === text));
}

let countries: ReadonlySet<string> | undefined;

/**
 * Tells whether a name is that of a country. A country and a place in it do not conflict: who lives in Berlin also
 * lives in Germany.
 */
function isCountry(value: readonly PlainWord[]): boolean {
  countries ??= listCountries();
  return countries.has(value.map(({ text }) => text).join(' '));
}

function listCountries(): Set<string> {
  const names = new Intl.DisplayNames(['en'], { type: 'region', fallback: 'none' });
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
  const codes = letters.flatMap((a) => letters.map((b) => a + b));
  return new Set(codes.flatMap((code) => names.of(code)?.toLowerCase() ?? []));
}

// ── One thing, one state ─────────────────────────────────────────────────────────────────────────────────────────────

/** Groups of states that exclude each other; a thing is in at most one state of a group at a time. */
const STATES: readonly ReadonlySet<string>[] = [
  'enabled disabled',
  'open closed',
  'alive dead',
  'single married divorced widowed',
  'on off',
  'public private',
  'left-handed right-handed',
  'required optional',
  'available unavailable',
  'active inactive',
  'online offline',
  'allowed forbidden',
  'red blue green yellow black white grey gray brown orange purple pink silver',
].map((states) => new Set(states.split(' ')));

function differInState(a: readonly PlainWord[], b: readonly PlainWord[]): boolean {
  if (a.length !== b.length) return false;
  const places = a.flatMap(({ text }, place) => (text === b[place]!.text ? [] : [place]));
  const [place, ...others] = places;
  if (place === undefined || others.length > 0 || !/^(?:is|am|are)$/u.test(a[place - 1]?.text ?? '')) return false;
  return STATES.some((states) => states.has(a[place]!.text) && states.has(b[place]!.text));
}

// ── One thing, one number or time ────────────────────────────────────────────────────────────────────────────────────

/** Verbs that describe a lasting state of a thing, not an action that somebody does from time to time. */
const STATIVE = new Set(
  `is are am has have costs cost starts start ends end begins begin opens open closes close weighs weigh expires listens
   lasts allows requires needs holds`.split(/\s+/),
);
/**
 * Verbs that describe a lasting state only with certain values: for each verb, the type of value (see `typedValues`).
 * `takes` describes a state in "the test takes 5 minutes", but not in general.
 */
const STATIVE_WITH: Readonly<Record<string, RegExp>> = {
  takes: /^duration$/u,
  take: /^duration$/u,
  runs: /^(?:version|code)$/u,
  uses: /^version$/u,
  use: /^version$/u,
};

/**
 * Tells whether two statements are equal but for one number, time or code, which has the same type and another value in
 * the other statement. False unless each has exactly one such value, after a verb of a lasting state.
 */
function differInTyped(a: readonly PlainWord[], b: readonly PlainWord[]): boolean {
  const [one, other] = [onlyValue(a), onlyValue(b)];
  if (one === null || other === null) return false;
  return one.rest === other.rest && areDifferent(one.value, other.value);
}

function onlyValue(words: readonly PlainWord[]): { readonly value: TypedValue; readonly rest: string } | null {
  const [value, ...others] = typedValues(words);
  if (value === undefined || others.length > 0) return null;
  const before = words.slice(0, value.start).map(({ text }) => text);
  const verb = before.findLast((text) => STATIVE.has(text) || Object.hasOwn(STATIVE_WITH, text));
  if (verb === undefined || before.indexOf(verb) === 0) return null;
  if (Object.hasOwn(STATIVE_WITH, verb) && !STATIVE_WITH[verb]!.test(value.type)) return null;
  // "I have a meeting at 9:00" says nothing about other meetings.
  if (before.slice(before.indexOf(verb)).some((text) => text === 'a' || text === 'an')) return null;
  const after = words.slice(value.end).map(({ text }) => text);
  const rest = [
    ...before.filter((text, place) => place < before.length - 1 || !/^(?:on|at|in)$/u.test(text)),
    '…',
    ...after,
  ];
  return { value, rest: rest.join(' ') };
}
