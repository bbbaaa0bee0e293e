import { createRandom } from '../../src/engine/random.ts';
import { PROFILES } from '../../src/engine/types.ts';
import { createTextSource } from '../natural-text.ts';
import { KINDS, type Kind, type LoadOptions } from './options.ts';

/** A request to send. */
export interface LoadRequest {
  readonly kind: Kind;
  readonly key: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Body as JSON; undefined for a request without a body. */
  readonly body: string | undefined;
}

const BATCH = 10;
/** Share of adds that repeat an earlier text, as clients that send twice do. */
const REPEATED_SHARE = 0.02;
/** Share of queries about something that no memory says. */
const UNANSWERABLE_SHARE = 0.05;
const SESSION_LENGTH = 20;
const SECTIONS = 6;

/**
 * Generates requests without end, as clients of a memory send them, in natural text. Users of a tenant are called
 * `load-0`, `load-1` and so on, so that their memories can be recognised and deleted.
 */
export function createRequests({ mix, keys, users, seed }: LoadOptions): () => LoadRequest {
  const random = createRandom(seed);
  const texts = createTextSource(seed + 1);
  const upTo = (count: number) => Math.floor(random() * count);
  const text = () => texts.text(60 + upTo(160));
  let said = text();
  let memories = 0;

  const memory = (user: string) => ({
    content: (said = random() < REPEATED_SHARE ? said : text()),
    user_id: user,
    session_id: `${user}-${Math.floor(memories++ / SESSION_LENGTH)}`,
  });
  const question = () =>
    random() < UNANSWERABLE_SHARE
      ? 'zyzzogeton quinquireme of yesteryear'
      : texts
          .sentence()
          .split(' ')
          .slice(0, 4 + upTo(9))
          .join(' ');
  const page = (sections: number) =>
    Array.from({ length: sections }, () => `## ${texts.sentence().slice(0, 60)}\n\n${text()} ${text()}`).join('\n\n');

  const parts: Readonly<Record<Kind, (user: string) => Pick<LoadRequest, 'method' | 'path'> & { body?: object }>> = {
    add: (user) => ({ method: 'POST', path: '/memory/add', body: memory(user) }),
    batch: (user) => ({
      method: 'POST',
      path: '/memory/add/batch',
      body: { items: Array.from({ length: BATCH }, () => memory(user)) },
    }),
    query: (user) => ({
      method: 'POST',
      path: '/memory/query',
      body: { query: question(), user_id: user, k: 8, profile: PROFILES[upTo(PROFILES.length)] },
    }),
    document: (user) => ({
      method: 'POST',
      path: '/memory/ingest',
      body: {
        ...(random() < 0.5
          ? { data: `<html><h1>A page</h1><p>${text()}</p><p>${text()}</p></html>`, content_type: 'html' }
          : { data: page(1 + upTo(SECTIONS)), content_type: 'md' }),
        user_id: user,
        title: texts.sentence().slice(0, 80),
      },
    }),
    read: (user) => ({
      method: 'GET',
      path: random() < 0.5 ? `/users/${user}/memories?l=20` : '/memory/all?l=20',
    }),
  };

  const nextKind = createPicker(mix, random);
  return () => {
    const kind = nextKind();
    const { method, path, body } = parts[kind](`load-${upTo(users)}`);
    return { kind, key: keys[upTo(keys.length)]!, method, path, body: body && JSON.stringify(body) };
  };
}

/** Makes a function that picks a kind of request at random, by the frequencies of `mix`. */
function createPicker(mix: LoadOptions['mix'], random: () => number): () => Kind {
  const total = KINDS.reduce((sum, kind) => sum + mix[kind], 0);
  return () => {
    let left = random() * total;
    return KINDS.find((kind) => (left -= mix[kind]) < 0) ?? KINDS[0];
  };
}
