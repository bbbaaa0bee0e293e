import { expect, test } from 'vitest';
import { createFederationClient } from '../../../src/engine/adapters/federation-client.ts';
import { bufferBytes, serveBursts } from '../../support/behind-extensions.ts';

const MIB = 1024 * 1024;

/** Asks the server at a port of this machine, with this bound on its answer. */
function ask(port: number, maxBytes: number) {
  const client = createFederationClient({
    deniedNetworks: [],
    federationNetworks: [{ address: '127.0.0.0', prefix: 8, family: 'ipv4' }],
    OM_FEDERATION_TIMEOUT_MS: 120_000,
  });
  const server = { name: 'other', url: `http://127.0.0.1:${port}`, key: null, remoteTenant: null };
  const room = { take: () => true, give: () => {} };
  return client.ask(server, {}, { maxBytes, room, signal: new AbortController().signal });
}

test('bytes of an answer that each come behind a long chunk extension do not keep that in memory', async () => {
  const before = bufferBytes();
  const { port, sent, end } = await serveBursts(400);
  const asked = ask(port, 20 * MIB);
  await sent;
  await expect.poll(() => bufferBytes() - before).toBeLessThan(4 * MIB);
  end();
  expect(await asked).toEqual({ outcome: 'answered', bytes: Buffer.from('x'.repeat(400)) });
});

test('a server that sends far more than the answer may have is left, however little of it is the answer', async () => {
  const { port } = await serveBursts(100);
  expect(await ask(port, 1_000)).toEqual({ outcome: 'invalid', detail: 'the server answered more than 1000 bytes' });
});
