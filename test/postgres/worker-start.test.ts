/** The thread of a worker that starts while the database cannot be reached. */
import net from 'node:net';
import path from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import { startThreadedRuntime } from '../../src/workers/threaded-runtime.ts';
import { startPostgres } from '../support/postgres.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Makes an address that passes its connections on to PostgreSQL, and that ends them at once until `open` is called. */
async function closedDoor(url: string) {
  const to = new URL(url);
  let isOpen = false;
  let refused = () => {};
  const isRefused = new Promise<void>((resolve) => (refused = resolve));
  const door = net.createServer((socket) => {
    socket.on('error', () => {});
    if (!isOpen) {
      refused();
      return void socket.destroy();
    }
    const inside = net.connect(Number(to.port), to.hostname);
    inside.on('error', () => socket.destroy());
    socket.on('close', () => inside.destroy());
    socket.pipe(inside).pipe(socket);
  });
  await new Promise<void>((resolve) => void door.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void door.close());
  const outside = new URL(url);
  outside.hostname = '127.0.0.1';
  outside.port = String((door.address() as net.AddressInfo).port);
  return { url: outside.href, isRefused, open: () => void (isOpen = true) };
}

const server = await startPostgres();
describe.skipIf(server === undefined)('the thread of a worker', () => {
  afterAll(() => server?.stop());

  test('waits for a database that cannot be reached, and then does its work', async () => {
    const door = await closedDoor(await server!.createSchema());
    const logged: string[] = [];
    const config = readConfig({
      OM_DATABASE_URL: door.url,
      OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'),
      OM_EMBEDDINGS: 'none',
    });
    const log = (_fields: object, event: string) => void logged.push(event);
    const runtime = startThreadedRuntime({
      config,
      logger: { debug: log, info: log, warn: log, error: log },
      ledgers: { alone: true },
    });
    onTestFinished(() => runtime.drain());
    void runtime.died.then(({ message }) => logged.push(message));
    await door.isRefused;
    const metrics = runtime.metricsJson();
    door.open();
    expect(await metrics).toBeInstanceOf(Array);
    expect(logged).toEqual([]);
  });
});
