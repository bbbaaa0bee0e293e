import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ROUTES } from '../../src/api/routes.ts';
import { createClient } from '../../src/client/index.ts';

type Methods = Readonly<Record<string, (input: object) => Promise<unknown> | AsyncIterable<unknown>>>;
const clientOf = (fetch: (url: string, init: RequestInit) => Promise<Response>) =>
  createClient({ url: 'http://cairn.test/below/', key: 'k', fetch }) as unknown as Methods;

test('every operation has a method, and every method an operation', () => {
  const methods = Object.keys(clientOf(() => Promise.reject(new Error('nothing is sent'))));
  // A route that answers with a list or with a stream has a method for each.
  const names = ROUTES.flatMap(({ name }) => (name === 'listEvents' ? [name, 'watchEvents'] : [name]));
  expect(methods.sort()).toEqual(names.sort());
});

describe.each(ROUTES.map((route) => ({ ...route, label: route.name })))('$label', (route) => {
  const { method, path, params = {}, query, body } = route;
  const inPath = Object.fromEntries(Object.entries(params).map(([name, { example }]) => [name, example]));
  const example = body?.example as object | undefined;

  test('sends each field of its example to the place where the route reads it', async () => {
    const sent: { readonly url: string; readonly init: RequestInit }[] = [];
    const client = clientOf(async (url, init) => {
      sent.push({ url, init });
      return emptyReply(init);
    });
    const input = { ...example, ...inPath };
    const reply = client[route.name]!(input);
    if (reply instanceof Promise) await reply;
    else for await (const event of reply) expect(event).toMatchObject({ event: 'gone' });
    const [{ url, init }] = sent as [(typeof sent)[0]];
    const place = path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(inPath[name]!));
    const { pathname, searchParams } = new URL(url);
    expect([init.method, pathname]).toEqual([method.toUpperCase(), `/below${place}`]);
    expect(new Headers(init.headers).get('authorization')).toBe('Bearer k');
    expect([...searchParams]).toEqual([]);
    const fields: unknown = JSON.parse((init.body as string | undefined) ?? '{}');
    expect(fields).toEqual(JSON.parse(JSON.stringify(example ?? {})));
  });

  test('sends parameters of the query string in it', async () => {
    const names = fieldsOf(query);
    const targets: string[] = [];
    const client = clientOf(async (url, init) => {
      targets.push(url);
      return emptyReply(init);
    });
    const own = names.filter((name) => !fieldsOf(body?.json).includes(name));
    const reply = client[route.name]!({ ...inPath, ...Object.fromEntries(own.map((name) => [name, 'given'])) });
    if (reply instanceof Promise) await reply;
    else for await (const event of reply) expect(event).toMatchObject({ event: 'gone' });
    expect([...new URL(targets[0]!).searchParams.keys()]).toEqual(own);
  });
});

/** A reply without content, or a stream that ends at once, as the request accepts. */
function emptyReply({ headers }: RequestInit): Response {
  const type = new Headers(headers).get('accept');
  if (type !== 'text/event-stream') return new Response('{}');
  return new Response('event: gone\ndata: {}\n\n', { headers: { 'content-type': type } });
}

function fieldsOf(schema: z.ZodType | undefined): string[] {
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => fieldsOf(option as z.ZodType));
  return Object.keys((schema as z.ZodObject | undefined)?.shape ?? {});
}
