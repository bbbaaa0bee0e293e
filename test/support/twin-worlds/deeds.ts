import { createRandom } from '../../../src/engine/random.ts';
import type { BoundKey } from './bound-key.ts';
import type { Sender, World } from './open-world.ts';

export const HOUR = 3_600_000;
/** Numbers of the things that exist in both worlds: memories that the key sees and that it does not, and others. */
export const COUNTS = { seen: 14, hidden: 10, documents: 2, items: 3 };

/**
 * How the hidden things of two worlds differ. With `place` they hold the same words at different places: of other
 * users, with other tags, keys and links. Scores rest on the words of the whole tenant, so they are equal, too. With
 * `all` they differ in everything, their number included.
 */
export type Difference = 'place' | 'all';

/** What two worlds have: whose view is compared, and how the hidden things differ. */
export interface Plan {
  readonly bound: BoundKey;
  readonly difference: Difference;
  /** Whether memories get vectors, and by them automatic links. */
  readonly hasVectors: boolean;
  readonly seed: number;
}

/** What is done to a world at some time. Names in braces stand for ids (`World.ids`). */
export interface Deed {
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly by?: Sender;
  /** Names under which ids are kept, each with the path of the field of the reply that holds it. */
  readonly keep?: readonly (readonly [name: string, field: string])[];
  /** Whether the world's jobs and schedules are run before it. */
  readonly worksBefore?: boolean;
}

/** Choices that only a seed decides. */
export type Random = ReturnType<typeof chooser>;

export function chooser(seed: number) {
  const random = createRandom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  return {
    below,
    chance: (share: number) => random() < share,
    one: <T>(list: readonly T[]): T => list[below(list.length)]!,
    some: <T>(list: readonly T[], share = 0.4): T[] => list.filter(() => random() < share),
  };
}

export const NAMES = ['Marta Lindqvist', 'Oskar Benning', 'Harbour Station', 'Project Heron', 'Lisbon'];
export const THINGS = ['ferry', 'ledger', 'greenhouse', 'printer', 'archive'];
export const USERS = ['ana', 'ben', ''];
export const SESSIONS = ['trip', 'review', ''];
export const OTHER_TAGS = ['home', 'club', 'gym'];
export const TYPES = ['note', 'rule', null];
export const LINK_TYPES = ['supports', 'derived_from', 'same_as', 'mentions'];

/** Makes a sentence; two sentences often differ in a word only, or not at all. */
export function sentence({ one, chance }: Random): string {
  const [name, thing, day] = [one(NAMES), one(THINGS), one(['Monday', 'Tuesday', 'Friday'])];
  const told = chance(0.7)
    ? `The ${thing} of ${name} is inspected on ${day} at nine.`
    : `${name} ${chance(0.5) ? 'does not like' : 'likes'} the ${thing}.`;
  return chance(0.2) ? `${told} See docs/${thing}.md.` : told;
}

/** Makes what the word index holds of a memory, apart from its tags. */
export function words(random: Random) {
  const { one, some, chance } = random;
  return {
    content: sentence(random),
    ...(chance(0.3) ? { title: `About the ${one(THINGS)}` } : {}),
    ...(chance(0.3) ? { entities: [one(NAMES), 'Kestrel Ltd'] } : {}),
    ...(chance(0.3) ? { gist: `A word on ${one(NAMES)}.` } : {}),
    ...(chance(0.4) ? { files: some(['src/app.ts', 'docs/ferry.md'], 0.6) } : {}),
  };
}

/** Makes fields of a memory that are in no word index. */
export function circumstances({ one, chance, below }: Random, at: number) {
  return {
    type: one(TYPES),
    ...(chance(0.4) ? { metadata: { team: one(['red', 'blue']), n: below(4) } } : {}),
    ...(chance(0.3) ? { event_time: at - below(90) * 24 * HOUR } : {}),
    ...(chance(0.3) ? { importance: below(11) / 10 } : {}),
    ...(chance(0.3) ? { confidence: below(11) / 10 } : {}),
  };
}

/** Makes ends of a memory's time, after which its words are gone. */
export function ends({ chance, below }: Random, at: number) {
  return {
    ...(chance(0.2) ? { valid_to: at + (1 + below(200)) * HOUR } : {}),
    ...(chance(0.2) ? { expires_at: at + (2 + below(200)) * HOUR } : {}),
  };
}

/** Chooses a user and tags with which the key sees a thing. */
export function seenPlace({ key }: BoundKey, { one, some }: Random) {
  return { user_id: key.userId ?? one(USERS), tags: [...(key.tags ?? []), ...some(OTHER_TAGS)] };
}

/**
 * Chooses a user and tags with which the key does not see a thing.
 * @param tag the tag that it has if the key is bound to none, so that its words are equal in both worlds
 */
export function hiddenPlace({ bound: { hides, key }, hasVectors }: Plan, { one, chance }: Random, tag: string) {
  const foreign = ['ben', 'cara', ''];
  if (hides === 'tenant') return { user_id: one(USERS), tags: [tag] };
  if (hides === 'user') return { user_id: one(foreign), tags: [tag] };
  // An automatic link leads to the nearest memory of the user, whether the key sees it or not (SECURITY.md).
  if (hasVectors) return { user_id: one(['cara', 'dora']), tags: [one(OTHER_TAGS)] };
  const isOther = key.userId !== undefined && chance(0.3);
  return { user_id: isOther ? one(foreign) : one([...USERS, 'cara']), tags: [one(OTHER_TAGS)] };
}

export const post = (at: number, path: string, body: object, more: Partial<Deed> = {}): Deed => ({
  ...{ at, method: 'POST', path, body },
  ...more,
});

/**
 * Does what is planned, each deed at its time, those of one time in their order.
 * @returns the statuses of the replies to `counted`
 */
export async function doAll(world: World, counted: readonly Deed[], others: readonly Deed[]): Promise<number[]> {
  const statuses: number[] = [];
  for (const deed of [...counted, ...others].toSorted((a, b) => a.at - b.at)) {
    const { at, method, path, body, by = 'admin', keep = [], worksBefore } = deed;
    world.clock.set(at);
    if (worksBefore) {
      await world.work();
      await world.tend();
    }
    const reply = await world.send(method, path, { ...(body === undefined ? {} : { body }), by });
    if (path === '/memory/query') await world.flush();
    if (counted.includes(deed)) statuses.push(reply.status);
    for (const [name, field] of keep) {
      const value = field
        .split('.')
        .reduce<unknown>((of, key) => (of as Record<string, unknown> | undefined)?.[key], reply.body);
      if (typeof value === 'string') world.ids.set(name, value);
    }
  }
  return statuses;
}
