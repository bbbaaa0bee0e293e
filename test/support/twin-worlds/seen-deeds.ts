import { START } from '../engine-fixture.ts';
import {
  chooser,
  circumstances,
  COUNTS,
  type Deed,
  ends,
  HOUR,
  LINK_TYPES,
  type Plan,
  post,
  type Random,
  seenPlace,
  sentence,
  SESSIONS,
  THINGS,
  words,
} from './deeds.ts';

type Next = () => number;

/** Plans what the key may see: the same in both worlds, one deed an hour from `START` on. */
export function seenDeeds(plan: Plan): Deed[] {
  const random = chooser(plan.seed);
  let at = START;
  const next = () => (at += HOUR);
  return [
    ...stored(plan, random, next),
    { ...post(next(), '/memory/reinforce', { id: any(random), boost: 0.2 }), worksBefore: true },
    ...changes(random, next),
    ...(plan.bound.hides === 'tags' ? passages(plan, random, next) : []),
    ...ofTheKey(plan, random, next),
    {
      ...post(next(), '/memory/add', { content: 'The ferry is late.', ...seenPlace(plan.bound, random) }),
      worksBefore: true,
    },
  ];
}

const any = ({ below }: Random) => `{v${below(COUNTS.seen)}}`;

function stored({ bound }: Plan, random: Random, next: Next): Deed[] {
  const { one, chance } = random;
  const deeds: Deed[] = [];
  for (let n = 0; n < COUNTS.seen; n += 1) {
    const at = next();
    const fields = { ...words(random), ...circumstances(random, at), ...ends(random, at), ...seenPlace(bound, random) };
    const external = chance(0.3) ? { external_id: `shown-${n}` } : {};
    const memory = { ...fields, ...external, session_id: one(SESSIONS) };
    const keep = [
      [`v${n}`, 'id'],
      [`vj${n}`, 'job_id'],
    ] as const;
    deeds.push(post(at, '/memory/add', { ...memory, on_duplicate: 'keep' }, { keep }));
    if (chance(0.2)) deeds.push(post(next(), '/memory/add', memory));
  }
  for (let n = 0; n < COUNTS.documents; n += 1) {
    const text = `# The ${one(THINGS)}\n\n${sentence(random)}\n\n${sentence(random)}\n`;
    const file = { content_type: 'md', text, file_name: `shown-${n}.md`, external_id: `shown-page-${n}` };
    const keep = [
      [`vd${n}`, 'document_id'],
      [`vdj${n}`, 'job_id'],
    ] as const;
    deeds.push(post(next(), '/memory/ingest', { ...file, ...seenPlace(bound, random) }, { keep }));
  }
  for (let n = 0; n < COUNTS.items; n += 1) {
    const place = { namespace: one(['settings', 'settings.editor']), key: `shown-${n}`, ...seenPlace(bound, random) };
    const body = { ...place, value: { theme: one(['dark', 'light']) } };
    deeds.push({ at: next(), method: 'PUT', path: '/items', body, keep: [[`vi${n}`, 'id']] });
  }
  return deeds;
}

function changes(random: Random, next: Next): Deed[] {
  const { one, below } = random;
  const patch = (body: object): Deed => ({ at: next(), method: 'PATCH', path: `/memory/${any(random)}`, body });
  const link = () => ({ src: any(random), dst: any(random), type: one(LINK_TYPES), weight: (1 + below(10)) / 10 });
  const kinds: (() => Deed)[] = [
    () => post(next(), '/memory/link', link()),
    () => post(next(), '/memory/link', link()),
    () => post(next(), '/memory/supersede', { old_id: any(random), new_id: any(random) }),
    () => post(next(), '/memory/contradict', { a: any(random), b: any(random) }),
    () => post(next(), '/memory/reinforce', { id: any(random), boost: 0.2 }),
    () => patch({ content: sentence(random), importance: 0.7 }),
    () => patch({ status: one(['archived', 'active']) }),
    () => ({ at: next(), method: 'DELETE', path: `/memory/${any(random)}` }),
  ];
  return Array.from({ length: 18 }, () => one(kinds)());
}

/** Plans how one memory leaves the bounds, and another enters them, of which only what it is then is the same. */
function passages({ bound }: Plan, random: Random, next: Next): Deed[] {
  const none = { title: '', gist: '', entities: [], files: [] };
  const entering = { ...none, ...words(random), tags: [...bound.key.tags!, 'club'], type: 'note' };
  const metadata = { team: 'red', n: null };
  return [
    { at: next(), method: 'PATCH', path: `/memory/${any(random)}`, body: { tags: ['home'] } },
    { at: next(), method: 'PATCH', path: '/memory/{in}', body: { ...entering, metadata } },
    { at: next(), method: 'PATCH', path: '/memory/{in}', body: { content: sentence(random) } },
  ];
}

/** Plans what the key itself does, and what is done for its user that has no tags. */
function ofTheKey({ bound, difference }: Plan, random: Random, next: Next): Deed[] {
  // What an answer strengthens follows from its scores, which are equal with the same words only.
  const reinforce = difference === 'place';
  const ask = (name: string, query: string): Deed =>
    post(next(), '/memory/query', { query, k: 3, reinforce }, { by: 'key', keep: [[name, 'recall_id']] });
  const batch = { items: [{ content: 'Said by the key.' }, { content: sentence(random) }] };
  const deeds = [
    { ...ask('vr0', 'ferry of Marta'), worksBefore: true },
    ask('vr1', 'who likes the ledger?'),
    post(next(), '/memory/add/batch?receipt=true', batch, { by: 'key', keep: [['vb0', 'receipt_id']] }),
  ];
  if (bound.hides === 'tags') return deeds;
  const owner = { user_id: bound.key.userId ?? 'ana' };
  return [
    ...deeds,
    post(next(), '/standing', { query: 'ferry', min_score: 0, ...owner }, { keep: [['vs0', 'id']] }),
    post(next(), '/webhooks', { url: 'https://example.com/shown', ...owner }, { keep: [['vw0', 'id']] }),
    post(next(), '/sessions/trip/log', { items: ['one', { two: 2 }, 'three'], ...owner }),
    post(next(), '/consolidations', owner, { keep: [['vcj0', 'job_id']] }),
  ];
}
