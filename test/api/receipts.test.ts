import { createHash } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { runCairn } from '../cli/run-cairn.ts';
import { plantedValues } from '../engine/privacy/planted-values.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const MAIL = plantedValues(createRandom(1), 1).find(({ kind }) => kind === 'email')!.value;

test('a receipt over HTTP names every span and what was redacted, and the command line proves it', async () => {
  const settings = { OM_EMBEDDINGS: 'none', OM_PII: 'redact', OM_CHUNK_TOKENS: '64', OM_CHUNK_OVERLAP_TOKENS: '8' };
  const api = await startApi({ folder: tempFolder(), workers: true, settings });
  onTestFinished(() => api.stop());
  const text = `${'Some words before it. '.repeat(30)}Write to ${MAIL}. ${'More words after it. '.repeat(30)}`;
  const added = await api.request('POST', '/memory/ingest?wait=60000', { body: { text, user_id: 'ana' } });
  const id = added.body['document_id'] as string;

  const { body } = await api.request('GET', `/documents/${id}/receipt?l=1000`);
  const content = (await api.request('GET', `/documents/${id}/content`)).text;
  expect(body).toMatchObject({
    complete: true,
    characters: content.length,
    held: content.length,
    sha256: createHash('sha256').update(content).digest('hex'),
    omissions: [{ reason: 'redacted', count: 1, characters: MAIL.length }],
  });
  const spans = body.items as unknown as { start_offset: number; own_offset: number; end_offset: number }[];
  let end = 0;
  for (const span of spans) {
    expect([span.own_offset, span.start_offset <= end]).toEqual([end, true]);
    end = span.end_offset;
  }
  expect(end).toBe(content.length);
  const page = (await api.request('GET', `/documents/${id}/receipt?l=2&u=1`)).body;
  expect([page.items, page.total]).toEqual([spans.slice(1, 3), spans.length]);

  expect((await api.request('GET', `/documents/${id}/receipt?user_id=ben`)).status).toBe(404);
  const cairn = (...args: string[]) =>
    runCairn(['receipt', id, ...args], { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY } });
  const shown = await cairn('--verify');
  expect([shown.code, shown.stdout]).toEqual([0, expect.stringContaining('complete')]);
  expect(shown.stdout).toContain('has the SHA-256 of the receipt');
  expect(JSON.parse((await cairn('--json')).stdout)).toEqual(body);
});
