import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { plantedValues } from '../engine/privacy/planted-values.ts';
import { createManualClock, type ManualClock, START } from '../support/engine-fixture.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from '../cli/run-cairn.ts';
import { fileTest } from '../support/store-settings.ts';

interface Item {
  readonly item: number;
  readonly fate: string;
  readonly memory_id: string | null;
  readonly characters: number;
  readonly held: boolean | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}
interface Receipt {
  readonly complete: boolean;
  readonly stored: number;
  readonly merged: number;
  readonly refused: number;
  readonly characters: number;
  readonly held: number;
  readonly items: readonly Item[];
  readonly total: number;
}

const DAY = 86_400_000;
const TEXT = 'Ben prefers tabs to spaces.';
const MAIL = plantedValues(createRandom(1), 1).find(({ kind }) => kind === 'email')!.value;

let api: TestApi;
let clock: ManualClock;
let folder: string;
const start = async (settings: Readonly<Record<string, string>> = {}) => {
  folder = tempFolder();
  clock = createManualClock(START);
  api = await startApi({ folder, clock, settings });
};
beforeEach(() => start());
afterEach(() => api.stop());

const addBatch = async (items: readonly object[], key = ADMIN_KEY) =>
  (await api.request('POST', '/memory/add/batch?receipt=true', { body: { items }, key })).body as unknown as {
    readonly receipt_id: string;
    readonly results: readonly { readonly id: string }[];
  };
const receiptOf = async (id: string, query = '') =>
  (await api.request('GET', `/receipts/${id}${query}`)).body as unknown as Receipt;
const keyOf = (key: object) =>
  api.engine.control.createKey({ tenantId: 'default', role: 'write', ...key } as never).secret;

describe('the receipt of a batch', () => {
  test('is there for OM_RECEIPT_DAYS, whether or not another batch has come since', async () => {
    const { receipt_id: id } = await addBatch([{ content: TEXT }]);
    clock.advance(30 * DAY);
    expect(await receiptOf(id)).toMatchObject({ complete: true });
    clock.advance(1);
    expect(await receiptOf(id)).toMatchObject({ code: 'not_found' });
  });

  test('says of every item which memory holds it, or why none does', async () => {
    const known = await api.add({ content: 'Known already.', external_id: 'doc-1' });
    const { receipt_id: id, results } = await addBatch([
      { content: TEXT },
      { content: `  ${TEXT.replaceAll(' ', '\n')} ` },
      { content: '' },
      { content: 'Known already.', external_id: 'doc-1' },
      { content: 'Another text.', external_id: 'doc-1' },
      { content: 'Zoë drinks 茶.' },
    ]);
    const receipt = await receiptOf(id);
    expect(receipt).toMatchObject({ complete: true, stored: 2, merged: 2, refused: 2, total: 6 });
    expect(receipt.items.map(({ fate, memory_id: memory, held }) => [fate, memory, held])).toEqual([
      ['stored', results[0]!.id, true],
      ['merged', results[0]!.id, true],
      ['refused', null, null],
      ['merged', known.id, true],
      ['refused', null, null],
      ['stored', results[5]!.id, true],
    ]);
    expect(receipt.items.flatMap(({ error }) => error?.code ?? [])).toEqual(['invalid', 'conflict']);
    expect(receipt.items.map(({ characters }) => characters)).toEqual([27, 30, 0, 14, 0, 13]);
    expect([receipt.characters, receipt.held]).toEqual([84, 84]);
    const page = await receiptOf(id, '?l=2&u=1');
    expect([page.items, page.total, page.stored]).toEqual([receipt.items.slice(1, 3), 6, 2]);
  });

  test('is compared with the memories as they are now', async () => {
    const { receipt_id: id, results } = await addBatch(
      ['one', 'two', 'three'].map((word) => ({ content: `${word}.` })),
    );
    await api.request('PATCH', `/memory/${results[0]!.id}`, { body: { tags: ['x'] } });
    expect(await receiptOf(id)).toMatchObject({ complete: true, held: 14 });
    await api.request('PATCH', `/memory/${results[1]!.id}`, { body: { content: 'Two.' } });
    await api.request('DELETE', `/memory/${results[2]!.id}`);
    const receipt = await receiptOf(id);
    expect(receipt).toMatchObject({ complete: false, characters: 14, held: 4 });
    expect(receipt.items.map(({ memory_id: memory, held }) => [memory, held])).toEqual([
      [results[0]!.id, true],
      [results[1]!.id, false],
      [null, false],
    ]);
  });

  fileTest('tells where the privacy settings replaced a part of a text, and holds no text itself', async () => {
    await api.stop();
    await start({ OM_PII: 'redact' });
    const { receipt_id: id } = await addBatch([{ content: `Write to ${MAIL} soon.` }, { content: TEXT }]);
    const receipt = await receiptOf(id);
    expect(receipt.items.map(({ held }) => held)).toEqual([false, true]);
    expect(receipt.complete).toBe(false);
    using file = openFile();
    expect(file.items()).not.toContain('tabs');
    expect(file.items()).not.toContain('Write');
  });

  fileTest('repeats nothing of an item that was not understood but the name of a known field', async () => {
    const items = [
      { content: TEXT, 'My secret plan is Rosebud': true },
      { content: TEXT, metadata: { sector: 'Rosebud' } },
      { content: 'x'.repeat(300_000), Rosebud: 1 },
      { content: '', Rosebud: 1 },
      ['Rosebud'],
    ];
    const { receipt_id: id } = await addBatch(items);
    const lines = [...items.map((item) => JSON.stringify(item)), '{"content": "Rosebud"', '"Rosebud"'];
    const ofLines = await api.request('POST', '/memory/add/batch?receipt=true', {
      ...{ body: `${lines.join('\n')}\n`, headers: { 'content-type': 'application/x-ndjson' } },
    });
    const errorsOf = async (receipt: string) =>
      (await receiptOf(receipt)).items.map(({ error }) => [error?.code, error?.message]);
    const errors = [
      ['invalid', 'the item'],
      ['invalid', 'metadata'],
      ['too_large', 'content'],
      ['invalid', 'content'],
      ['invalid', 'the item'],
    ];
    expect(await errorsOf(id)).toEqual(errors);
    expect(await errorsOf(String(ofLines.body['receipt_id']))).toEqual([
      ...errors,
      ['invalid', 'the item'],
      ['invalid', 'the item'],
    ]);
    using file = openFile();
    expect(file.items()).not.toContain('Rosebud');
  });

  test('covers an upload of lines, also one that ended early', async () => {
    const lines = Array.from({ length: 200 }, (_, n) => JSON.stringify({ content: n % 50 === 7 ? '' : `line ${n}.` }));
    const headers = { 'content-type': 'application/x-ndjson' };
    const send = (body: string) => api.request('POST', '/memory/add/batch?receipt=true', { body, headers });
    const whole = (await send(`${lines.join('\n')}\n`)).body;
    expect(await receiptOf(String(whole['receipt_id']), '?l=1')).toMatchObject({
      ...{ ended: true, complete: true, stored: 196, merged: 0, refused: 4, total: 200 },
    });
    const { control } = api.engine;
    const limited = control.createKey({ tenantId: 'default', role: 'write' });
    control.limits.change({ tenantId: 'default', keyId: limited.record.id }, { batch_items: 130 });
    const broken = await api.request('POST', '/memory/add/batch?receipt=true', {
      ...{ body: `${lines.join('\n')}\n`, headers, key: limited.secret },
    });
    expect(broken.body['error']).toMatchObject({ code: 'rate_limited' });
    const receipt = await receiptOf(String(broken.body['receipt_id']), '?l=1000');
    expect(receipt).toMatchObject({ ended: false, complete: false, merged: 125, refused: 3, total: 128 });
    expect(receipt.total).toBe(broken.body.results.length);
  });

  test('is read by those who may: a key that only adds, or is bound, finds its own', async () => {
    const [adder, otherAdder, bound, reader] = [
      keyOf({ role: 'add' }),
      keyOf({ role: 'add' }),
      keyOf({ userId: 'ana' }),
      keyOf({ role: 'read' }),
    ];
    const { receipt_id: id } = await addBatch([{ content: TEXT }], adder);
    const { receipt_id: ofBound } = await addBatch([{ content: 'Hers.' }, { content: 'His.', user_id: 'ben' }], bound);
    const statusOf = async (receipt: string, key: string) =>
      (await api.request('GET', `/receipts/${receipt}`, { key })).status;
    expect(await statusOf(id, adder)).toBe(200);
    expect(await statusOf(id, reader)).toBe(200);
    expect(await statusOf(id, otherAdder)).toBe(404);
    expect(await statusOf(id, bound)).toBe(404);
    expect(await statusOf(ofBound, bound)).toBe(200);
    expect(await receiptOf(ofBound)).toMatchObject({ stored: 1, refused: 1, complete: true });
    expect((await api.request('GET', '/receipts/none')).body.code).toBe('not_found');
  });

  test('is kept only where it is asked for, and for OM_RECEIPT_DAYS', async () => {
    const without = await api.request('POST', '/memory/add/batch', { body: { items: [{ content: TEXT }] } });
    expect(without.body).not.toHaveProperty('receipt_id');
    const { receipt_id: id } = await addBatch([{ content: TEXT }]);
    clock.advance(29 * DAY);
    await addBatch([{ content: TEXT }]);
    expect((await api.request('GET', `/receipts/${id}`)).status).toBe(200);
    clock.advance(2 * DAY);
    await addBatch([{ content: TEXT }]);
    expect((await api.request('GET', `/receipts/${id}`)).status).toBe(404);
  });

  test('the command line shows it, and fails where something is missing', async () => {
    const { receipt_id: id, results } = await addBatch([{ content: TEXT }, { content: '' }]);
    const cairn = (...args: string[]) =>
      runCairn(['receipt', id, '--batch', ...args], { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY } });
    const shown = await cairn();
    expect([shown.code, shown.stdout]).toEqual([0, expect.stringContaining('27 of 27 characters held  complete')]);
    expect(shown.stdout).toMatch(/invalid: content$/m);
    await api.request('DELETE', `/memory/${results[0]!.id}`);
    const after = await cairn('--json');
    expect([after.code, JSON.parse(after.stdout)]).toEqual([1, expect.objectContaining({ complete: false })]);
  });
});

function openFile() {
  const db = new Database(`${folder}/cairn.sqlite`, { readonly: true });
  return {
    items: () => (db.prepare('SELECT items FROM batch_receipts').pluck().all() as string[]).join('\n'),
    [Symbol.dispose]: () => db.close(),
  };
}
