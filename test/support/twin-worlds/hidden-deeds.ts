import { START } from '../engine-fixture.ts';
import {
  chooser,
  circumstances,
  COUNTS,
  type Deed,
  ends,
  HOUR,
  hiddenPlace,
  LINK_TYPES,
  NAMES,
  OTHER_TAGS,
  type Plan,
  post,
  type Random,
  seenPlace,
  sentence,
  SESSIONS,
  THINGS,
  TYPES,
  words,
} from './deeds.ts';

const MINUTE = 60_000;
/** A time at which the first memories of both kinds are there. */
const LATE = START + 3 * HOUR;

/** Where the hidden things of one world come from. */
interface Source {
  readonly plan: Plan;
  /** Chooses the words, as in the other world if only places differ. */
  readonly told: Random;
  readonly random: Random;
  readonly isAll: boolean;
  /** Whether others of the same user may have equal keys and ids: the key is not bound to tags. */
  readonly isApart: boolean;
  /** Chooses a time at which hidden and seen things are there already. */
  readonly sometime: () => number;
}

/**
 * Plans what the key may not see, at times up to `end`. It differs between worlds.
 * @param world number of the world
 */
export function hiddenDeeds(plan: Plan, end: number, world: number): Deed[] {
  const random = chooser(plan.seed + 1_000_000 * (world + 2));
  const isAll = plan.difference === 'all';
  const source: Source = {
    plan,
    random,
    told: isAll ? random : chooser(plan.seed + 1_000_000),
    isAll,
    isApart: plan.bound.hides !== 'tags',
    sometime: () => LATE + random.below(Math.floor((end - LATE) / MINUTE)) * MINUTE + 1_000,
  };
  const by = plan.bound.hides === 'tenant' ? 'stranger' : 'admin';
  const deeds = [
    ...(plan.bound.hides === 'tags' ? [entering(source)] : []),
    ...memories(source),
    ...documents(source),
    ...items(source),
    ...((isAll ? random : chooser(plan.seed)).chance(0.4) ? crowd(source) : []),
    ...changes(source),
    ...watchers(source),
  ];
  return deeds.map((deed) => ({ ...deed, by }));
}

/** Makes the memory that is shared later. What it said before is hidden, and stays so in its history. */
function entering({ plan, told, random }: Source): Deed {
  const { user_id } = seenPlace(plan.bound, chooser(plan.seed));
  // Automatic links are measured by the words, and stay.
  const { one } = plan.hasVectors ? chooser(plan.seed) : told;
  // The sentence is of one form, as its sector decides how fast its salience falls.
  const content = `The ${one(THINGS)} of Marta Lindqvist is inspected on Monday at nine.`;
  const others = { metadata: { n: random.below(9) }, type: random.one(TYPES), tags: [told.one(OTHER_TAGS)] };
  const memory = { content, importance: 0.5, user_id, ...others, on_duplicate: 'keep' };
  return post(START + MINUTE, '/memory/add', memory, { keep: [['in', 'id']] });
}

function memories({ plan, told, random, isAll, isApart, sometime }: Source): Deed[] {
  const { one, chance, below } = random;
  const count = COUNTS.hidden + (isAll ? below(6) : 0);
  return Array.from({ length: count }, (_, n) => {
    const isNamed = n < COUNTS.hidden;
    const at = isNamed ? START + (2 + n) * MINUTE : sometime();
    // Memories of one session share words for ranking, so those of equal words have none.
    const session = isAll ? one(isApart ? SESSIONS : ['hidden', 'other', '']) : '';
    const { entities, ...wording } = words(told);
    // The same names to the word index, which folds case.
    const spelled = entities?.map((name) => (chance(0.5) ? name.toUpperCase() : name));
    const memory = {
      ...{ ...wording, ...(spelled === undefined ? {} : { entities: spelled }) },
      ...circumstances(random, at),
      ...(isAll ? ends(random, at) : {}),
      ...hiddenPlace(plan, random, told.one(OTHER_TAGS)),
      ...(chance(0.3) ? { external_id: isApart ? `shown-${n}` : `hidden-${n}` } : {}),
      session_id: session,
      on_duplicate: 'keep',
    };
    const keep = [
      [`h${n}`, 'id'],
      [`hj${n}`, 'job_id'],
    ] as const;
    return post(at, '/memory/add', memory, isNamed ? { keep } : {});
  });
}

function documents({ plan, told, random, isApart }: Source): Deed[] {
  return Array.from({ length: COUNTS.documents }, (_, n) => {
    const text = `# The ${told.one(THINGS)}\n\n${sentence(told)}\n\nHidden line ${n}.\n`;
    const external_id = isApart ? `shown-page-${n}` : `hidden-page-${n}`;
    const file = { content_type: 'md', text, file_name: `shown-${n}.md`, external_id };
    const keep = [
      [`hd${n}`, 'document_id'],
      [`hdj${n}`, 'job_id'],
    ] as const;
    const place = hiddenPlace(plan, random, told.one(OTHER_TAGS));
    return post(START + (20 + n) * MINUTE, '/memory/ingest', { ...file, ...place }, { keep });
  });
}

function items({ plan, told, random, isApart }: Source): Deed[] {
  return Array.from({ length: COUNTS.items }, (_, n) => {
    const namespace = random.one(['settings', 'settings.editor', 'private']);
    const value = { theme: told.one(['dark', 'red']), n: told.below(9) };
    const place = { namespace, key: isApart ? `shown-${n}` : `hidden-${n}` };
    const body = { ...place, value, ...hiddenPlace(plan, random, told.one(OTHER_TAGS)) };
    return { at: START + (30 + n) * MINUTE, method: 'PUT', path: '/items', body, keep: [[`hi${n}`, 'id']] };
  });
}

/** Makes more memories with seen names, and perhaps links to a seen memory, than a graph follows from one node. */
function crowd({ plan, random, told, isAll, sometime }: Source): Deed[] {
  // Before all that is asked, as its words count.
  const at = isAll ? sometime() : LATE;
  const place = hiddenPlace(plan, random, 'gym');
  const some = Array.from({ length: 70 }, (_, n) => n);
  const content = (n: number) => `Note ${n} on the ferry of ${told.one(NAMES)}.`;
  const batch = { items: some.map((n) => ({ ...place, content: content(n), entities: NAMES })) };
  const keep = some.map((n) => [`c${n}`, `results.${n}.id`] as const);
  const linked = isAll || random.chance(0.5) ? some : [];
  return [
    post(at, '/memory/add/batch', batch, { keep }),
    ...linked.map((n) => post(at + 1, '/memory/link', { src: `{c${n}}`, dst: '{v2}', type: 'supports', weight: 1 })),
  ];
}

function changes({ random, isAll, sometime: at }: Source): Deed[] {
  const { one, below, chance } = random;
  const hidden = () => `{h${below(COUNTS.hidden)}}`;
  const seen = () => `{v${below(COUNTS.seen)}}`;
  const other = () => (chance(0.5) ? hidden() : seen());
  const link = (src: string, dst: string) => post(at(), '/memory/link', { src, dst, type: one(LINK_TYPES), weight: 1 });
  const patch = (body: object): Deed => ({ at: at(), method: 'PATCH', path: `/memory/${hidden()}`, body });
  const contradict = (a: string, b: string) => post(at(), '/memory/contradict', { a, b, winner: b });
  const ask = (query: object) => post(at(), '/memory/query', { ...query, reinforce: false });
  const kinds: (() => Deed)[] = [
    () => link(hidden(), hidden()),
    () => link(hidden(), seen()),
    () => link(seen(), hidden()),
    () => post(at(), '/memory/supersede', { old_id: hidden(), new_id: other() }),
    () => contradict(hidden(), other()),
    () => post(at(), '/memory/reinforce', { id: hidden(), boost: 0.4 }),
    () => patch({ importance: 0.9, metadata: { n: below(9) } }),
    () => ask({ query: 'ferry of Marta', filters: { tags: [one(OTHER_TAGS)] } }),
    () => ask({ query: 'who likes the ledger?', min_score: 0 }),
  ];
  const ofWords: (() => Deed)[] = [
    () => patch({ content: sentence(random), tags: [one(OTHER_TAGS)] }),
    () => patch({ status: one(['archived', 'active']) }),
    () => ({ at: at(), method: 'DELETE', path: `/memory/${hidden()}` }),
    () => ({ at: at(), method: 'DELETE', path: '/memory', body: { tags: ['gym'], user_id: 'cara' } }),
  ];
  return Array.from({ length: 8 + below(12) }, () => one(isAll ? [...kinds, ...ofWords] : kinds)());
}

/** Makes recalls, standing queries, webhooks, evaluations, session logs and consolidations of others. */
function watchers({ plan: { bound }, random, isAll, sometime: at }: Source): Deed[] {
  const { one, below } = random;
  const asker = bound.hides === 'user' ? 'ben' : one(['ana', 'ben']);
  const other = bound.hides === 'user' ? 'ben' : 'cara';
  const asked = { query: 'ferry', user_id: asker, reinforce: false };
  const log = (n: number) =>
    post(at(), `/sessions/${one(['trip', 'other'])}/log`, { user_id: other, items: [n, { n }] });
  const batch = { items: [{ content: `Hidden ${below(99)}.`, user_id: other, tags: ['home'] }] };
  return [
    post(LATE, '/memory/query', asked, { keep: [['hr0', 'recall_id']] }),
    post(LATE, '/memory/query', { ...asked, filters: { tags: ['work'] } }, { keep: [['hr1', 'recall_id']] }),
    post(LATE, '/standing', { query: 'ferry', user_id: asker, min_score: 0 }, { keep: [['hs0', 'id']] }),
    post(LATE, '/webhooks', { url: 'https://example.com/hidden', user_id: asker }, { keep: [['hw0', 'id']] }),
    post(LATE, '/evals', { name: 'hidden', items: [{ query: 'ferry', expected: ['{h0}'] }] }),
    ...Array.from({ length: 1 + below(4) }, (_, n) => log(n)),
    ...(isAll
      ? [
          post(LATE, '/memory/add/batch?receipt=true', batch, { keep: [['hb0', 'receipt_id']] }),
          post(at(), '/consolidations', { user_id: other }, { keep: [['hcj0', 'job_id']] }),
        ]
      : []),
  ];
}
