import type { Reply } from '../start-api.ts';
import type { Difference, Plan } from './deeds.ts';
import type { Ask, Operation } from './operations.ts';
import type { World } from './open-world.ts';

/** An operation as `GET /openapi.json` describes it. */
export interface Described {
  readonly name: string;
  readonly method: string;
  readonly path: string;
}

export async function describedOperations(world: World): Promise<ReadonlyMap<string, Described>> {
  const { paths } = (await world.send('GET', '/openapi.json')).body as unknown as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>;
  };
  const found = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId: name }]) => ({ name, method: method.toUpperCase(), path })),
  );
  return new Map(found.map((operation) => [operation.name, operation]));
}

/** A reply that differs between two worlds, or names something hidden; both cut around the first difference. */
export interface Finding {
  readonly asked: string;
  readonly first: string;
  readonly second: string;
}

/** Which of the asks of an operation are compared, and how. */
export interface Comparison {
  readonly plan: Plan;
  /** Whether what the request leaves to do is done before the next one. */
  readonly settles: boolean;
  /** Tells whether this ask is made in this run. */
  readonly isAsked: () => boolean;
}

/** Two worlds whose replies are compared. */
export interface Twins {
  readonly worlds: readonly World[];
  readonly views: readonly View[];
}

/** Asks both worlds the same, follows pages to the end, and returns what differs. */
export async function compareOperation(
  { worlds, views }: Twins,
  described: Described,
  operation: Operation,
  { plan: { bound, difference }, settles, isAsked }: Comparison,
): Promise<Finding[]> {
  const isBound = bound.hides !== 'tenant';
  const hasOtherScores = difference === 'all' && isBound;
  const onlyStatus = operation.isRanked === true && hasOtherScores;
  const findings: Finding[] = [];
  if (operation.reinforces && hasOtherScores) return findings;
  for (const ask of operation.asks) {
    if (!isAsked()) continue;
    const answers: string[] = [];
    const asked = `${described.name} ${JSON.stringify(ask)}`;
    for (const [n, world] of worlds.entries()) {
      const replies = await askWorld(world, described, ask, settles);
      const pages = operation.hasShortPages && isBound ? [joined(replies)] : replies;
      answers.push(pages.map((reply) => views[n]!.show(reply, { onlyStatus, isBound, difference })).join('\n---\n'));
      const told = replies.flatMap((reply) => views[n]!.hiddenIn(reply)).filter((name) => !asked.includes(`{${name}}`));
      if (told.length > 0) findings.push({ asked, first: `tells of ${told.join(', ')}`, second: '' });
    }
    const [first = '', second = ''] = answers;
    if (first !== second) findings.push({ asked, ...around(first, second) });
  }
  return findings;
}

function around(first: string, second: string): Pick<Finding, 'first' | 'second'> {
  let at = 0;
  while (first[at] === second[at]) at += 1;
  const cut = (text: string) => text.slice(Math.max(0, at - 100), at + 150);
  return { first: cut(first), second: cut(second) };
}

/** Most pages of a list that are followed. */
const MOST_PAGES = 200;

async function askWorld(world: World, described: Described, ask: Ask, settles: boolean): Promise<Reply[]> {
  const { params = {}, headers, query = '' } = ask;
  const path = Object.entries(params).reduce((text, [key, value]) => text.replace(`{${key}}`, value), described.path);
  const replies: Reply[] = [];
  let next: readonly [string, string | number] | undefined;
  do {
    const inBody = next !== undefined && ask.body !== undefined;
    const searched = [query, ...(next === undefined || inBody ? [] : [next.join('=')])].filter((part) => part !== '');
    const body = inBody ? { ...ask.body, [next![0]]: next![1] } : ask.body;
    const sent = world.send(described.method, searched.length === 0 ? path : `${path}?${searched.join('&')}`, {
      ...(body === undefined ? {} : { body }),
      ...(headers === undefined ? {} : { headers }),
    });
    const reply = await (settles ? settled(world, sent) : sent);
    replies.push(reply);
    next = nextPage(reply, described.name);
  } while (next !== undefined && replies.length < MOST_PAGES);
  if (settles) world.clock.advance(1_000);
  return replies;
}

/**
 * Runs jobs until a request that may wait for them is answered, and all of them are done. So what follows does not
 * depend on how long this took.
 */
async function settled(world: World, request: Promise<Reply>): Promise<Reply> {
  let isAnswered = false;
  const answered = request.finally(() => (isAnswered = true));
  while (!isAnswered) {
    await Promise.race([answered, new Promise((resolve) => setTimeout(resolve, 20))]);
    await world.work();
  }
  await world.flush();
  return answered;
}

/** Returns the parameter by which the next page is asked for, and its value; undefined after the last page. */
function nextPage({ body }: Reply, name: string): readonly [string, string | number] | undefined {
  const { next_cursor: following, next, cursor, has_more: hasMore } = (body ?? {}) as Record<string, unknown>;
  if (typeof following === 'string') return ['cursor', following];
  if (hasMore === true) return ['cursor', String(cursor)];
  if (typeof next !== 'number' && typeof next !== 'string') return undefined;
  return [BY_BEFORE.has(name) ? 'before' : 'u', next];
}
/** Operations whose pages are asked for by `before`; others by `u`. */
const BY_BEFORE = new Set(['getHistory', 'listRecalls', 'readLog', 'listConsolidations']);

/** Joins the list of several pages. */
function joined(replies: readonly Reply[]): Reply {
  const first = replies[0]!;
  if (first.status !== 200) return first;
  const name = Object.keys(first.body).find((key) => Array.isArray(first.body[key]))!;
  return { ...first, text: JSON.stringify(replies.flatMap(({ body }) => body[name])) };
}

// ── Views ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What one world answers, in a form in which the replies of two worlds can be compared. */
export interface View {
  /** Returns what a reply says. Ids that no request names are numbered in the order in which they first appear. */
  show(reply: Reply, options: Shown): string;
  /** Returns names of the hidden things whose ids stand in a reply. */
  hiddenIn(reply: Reply): string[];
}

interface Shown {
  readonly onlyStatus: boolean;
  readonly isBound: boolean;
  readonly difference: Difference;
}

/** Headers that differ between any two replies, or say nothing that the body does not. */
const LEFT_OUT = ['date', 'x-request-id', 'content-length', 'connection', 'keep-alive'];
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** What differs between any two services: secrets, measured times, the time of the machine, sizes on the disk. */
const OF_ANY_TWO: readonly (readonly [RegExp, string])[] = [
  [/"(secret|erasure)":"(<[^>]+>\.)?[^"<]+"/g, '"$1":"<secret>"'],
  [/(be given to the user: <[^>]+>\.)[\w-]{22}/g, '$1<secret>'],
  [/"(ms|parse|store|encode|database_bytes|wal_bytes)":[\d.e-]+/g, '"$1":<measured>'],
  // The tokens of a prompt are those of its ids, too.
  [/"tokens":\d+,"ids"/g, '"tokens":<tokens>,"ids"'],
];
/** What SECURITY.md says that a bound key may learn. */
const ALLOWED: readonly (readonly [RegExp, string])[] = [
  // Cursors and job numbers, which are in tokens, rise with everybody's writes.
  [/\b[0-9a-f]{8}\.[0-9a-z]+\.[0-9a-z]+\b/g, '<token>'],
  [/"(next_cursor|cursor)":"[^"]+"/g, '"$1":"<cursor>"'],
  [/ask again with cursor [\w-]+/g, 'ask again with cursor <cursor>'],
  // A delete counts the links that it removed, those to other memories included.
  [/("vectors":\d+,"edges":)\d+/g, '$1<links>'],
  [/(\d+ vectors, )\d+ links/g, '$1<links>'],
];

export function viewOf({ ids, keyIds }: World): View {
  // Ids that requests name have the same names in both worlds.
  const names = new Map([...ids].map(([name, id]) => [id, name]));
  for (const [n, id] of keyIds.entries()) names.set(id, `key ${n}`);
  let met = 0;
  const named = (id: string) => {
    const name = names.get(id) ?? `id ${(met += 1)}`;
    names.set(id, name);
    return `<${name}>`;
  };
  const keys = new RegExp(keyIds.join('|'), 'g');
  const replaced = (text: string, rules: readonly (readonly [RegExp, string])[]) =>
    rules.reduce((changed, [pattern, by]) => changed.replace(pattern, by), text);
  const shown = (text: string, { isBound, difference }: Shown) => {
    const plain = text
      .replace(UUID, named)
      .replace(keys, named)
      // Triggers of a database note the time of the machine.
      .replace(/\b1\d{12}\b/g, (time) => (Math.abs(Number(time) - Date.now()) < 86_400_000 ? '<now>' : time));
    const ofBoth = replaced(plain, [...OF_ANY_TWO, ...ALLOWED.slice(0, isBound ? ALLOWED.length : 3)]);
    // The number of matches of a logged question rests on scores.
    return isBound && difference === 'all' ? ofBoth.replace(/"matches":\d+/g, '"matches":<matches>') : ofBoth;
  };
  return {
    show({ status, headers, text }, options) {
      if (options.onlyStatus) return String(status);
      const kept = [...headers].filter(([name]) => !LEFT_OUT.includes(name)).map((header) => header.join(': '));
      return [status, ...[...kept.toSorted(), '', text].map((part) => shown(part, options))].join('\n');
    },
    hiddenIn: ({ text }) =>
      [...ids].filter(([name, id]) => /^[hc][a-z]*\d+$/.test(name) && text.includes(id)).map(([name]) => name),
  };
}
