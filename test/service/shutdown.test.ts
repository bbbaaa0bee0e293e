import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { expect, test } from 'vitest';
import {
  checkAdds,
  chooseSeed,
  createAddClient,
  describeReport,
  expectFinished,
  expectSound,
  withStore,
} from '../support/add-checker.ts';
import { databaseFile, startServiceProcess, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const LAST_WORDS = 'said while the service was about to stop';

/** A service under load by a client that goes on with whatever service there is next. */
async function startUnderLoad(settings: Readonly<Record<string, string>> = {}) {
  const folder = tempFolder();
  const history = path.join(folder, 'history.jsonl');
  const service = await startServiceProcess({ folder, settings });
  let up = Promise.resolve(service);
  const seed = chooseSeed();
  const client = createAddClient({ history, seed, concurrency: 16, service: () => up });
  const adding = client.add(300);
  await client.untilAcknowledged(50);
  return {
    folder,
    service,
    client,
    /** From here on the client waits for the next service. */
    async endAs(end: (service: ServiceProcess) => Promise<void>) {
      const next = Promise.withResolvers<ServiceProcess>();
      const ended = end(service).then(() => service.exited);
      up = next.promise;
      await ended;
      return { restart: async () => next.resolve(await startServiceProcess({ folder, settings })), next: next.promise };
    },
    async finish(last: ServiceProcess, alsoStored: readonly string[] = []) {
      await adding;
      await last.idle();
      const report = await checkAdds(last, history);
      await last.end('SIGTERM');
      console.log(`seed ${seed}: ${describeReport(report)}; statuses ${JSON.stringify([...client.statuses])}`);
      const { unexpected } = report;
      expect(unexpected).toEqual(alsoStored);
      expectSound({ ...report, unexpected: [] });
      expect(expectFinished(folder)).toBe(report.ok + report.recovered + unexpected.length);
    },
  };
}

/** A request that the service has begun to read, as it said `100 Continue`. */
async function beginAdd(service: ServiceProcess) {
  const request = http.request(`${await service.ready}/memory/add`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', expect: '100-continue' },
  });
  request.flushHeaders();
  await once(request, 'continue');
  return {
    async finish(body: object): Promise<number | undefined> {
      request.end(JSON.stringify(body));
      const [response] = (await once(request, 'response')) as [http.IncomingMessage];
      response.resume();
      return response.statusCode;
    },
  };
}

test('SIGTERM: the worker stops at once, and not only when the requests in flight are answered', async () => {
  const folder = tempFolder();
  const service = await startServiceProcess({ folder });
  const inFlight = await beginAdd(service);
  service.signal('SIGTERM');
  await service.logged('worker_drained');
  expect(await inFlight.finish({ content: LAST_WORDS })).toBe(202);
  expect(await service.exited).toEqual({ code: 0, signal: null });
  const next = await startServiceProcess({ folder });
  expect(await next.idle()).toMatchObject({ done: 1 });
  await next.end('SIGTERM');
});

test('SIGTERM under load: what is in flight is answered, work is handed back, the log is emptied, the exit code is 0', async () => {
  const load = await startUnderLoad();
  const { restart, next } = await load.endAs(async (service) => {
    const inFlight = await beginAdd(service);
    service.signal('SIGTERM');
    await service.logged('stopping');
    const ready = await service.request('GET', '/ready').then(
      ({ status }) => status,
      () => 'refused',
    );
    expect([503, 'refused']).toContain(ready);
    expect(await inFlight.finish({ content: LAST_WORDS })).toBe(202);
    // One that is not done after OM_SHUTDOWN_MS ends with another code.
    expect(await service.exited).toEqual({ code: 0, signal: null });
  });
  expect(fs.statSync(`${databaseFile(load.folder)}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0);
  withStore(load.folder, ({ db }) => {
    const count = (condition: string) => db.prepare(`SELECT count(*) FROM jobs WHERE ${condition}`).pluck().get();
    expect(count(`state = 'active' OR lease_owner IS NOT NULL`)).toBe(0);
    expect(count('suspect = 1')).toBe(0);
  });
  await restart();
  await load.finish(await next, [LAST_WORDS]);
});

test('a second SIGTERM ends the service at once, and nothing acknowledged is lost', async () => {
  const load = await startUnderLoad();
  const { restart, next } = await load.endAs(async (service) => {
    service.signal('SIGTERM');
    await service.logged('stopping');
    service.signal('SIGTERM');
    const { code } = await service.exited;
    // It may have been done before the second signal came.
    expect([0, 130]).toContain(code);
  });
  await restart();
  await load.finish(await next);
});
