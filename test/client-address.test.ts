import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { clientAddresses } from '../src/client-address.ts';

let server: http.Server | undefined;
afterEach(() => void server?.close());

/** Sends requests with these headers X-Forwarded-For by way of a trusted proxy. @returns the clients' addresses */
async function addressesBehindProxy(forwarded: readonly string[]): Promise<string[]> {
  const addressOf = clientAddresses(['127.0.0.0/8', '10.0.0.1', 'fd00::/8']);
  const answering = http.createServer((request, response) => response.end(addressOf(request)));
  server = answering;
  await new Promise<void>((resolve) => answering.listen(0, '127.0.0.1', resolve));
  const { port } = answering.address() as AddressInfo;
  const found: string[] = [];
  for (const header of forwarded) {
    const reply = await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-forwarded-for': header } });
    found.push(await reply.text());
  }
  return found;
}

test('behind a proxy the client is the last entry that is no proxy, with or without a port', async () => {
  const found = await addressesBehindProxy([
    '1.2.3.4, 203.0.113.9',
    '1.2.3.4, 203.0.113.9, 10.0.0.1',
    '1.2.3.4, 203.0.113.9:52311',
    '1.2.3.4, 203.0.113.9:52311, 10.0.0.1:80, [fd00::1]:443',
    '1.2.3.4, [2001:db8::7]:52311',
    '1.2.3.4, [2001:db8::7]',
    '1.2.3.4, [::ffff:203.0.113.9]:52311',
  ]);
  const [v4, v6] = ['203.0.113.9', '2001:db8::7'];
  expect(found).toEqual([v4, v4, v4, v4, v6, v6, v4]);
});

test('behind a proxy an entry that is no address hides what a client wrote left of it', async () => {
  const unknown = ['unknown', '_hidden', '', '203.0.113.9:port', '[2001:db8::7', '203.0.113.999:80', 'unix:'];
  const found = await addressesBehindProxy(unknown.flatMap((entry) => [`1.2.3.4, ${entry}`, `${entry}, 10.0.0.1`]));
  expect(new Set(found)).toEqual(new Set(['127.0.0.1']));
});
