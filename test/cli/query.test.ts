import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PROFILES } from '../../src/engine/types.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

let api: TestApi;
const folder = tempFolder();
const cairn = (args: string[]) => runCairn(args, { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY } });
const ids: string[] = [];

beforeAll(async () => {
  api = await startApi({ folder, workers: true });
  const turns = ['The ferry leaves at nine', 'From which pier does the ferry leave?', 'Pier four, beside the café'];
  let token = '';
  for (const [place, content] of turns.entries()) {
    const added = await api.add({
      content,
      user_id: 'ann',
      session_id: 'trip',
      event_time: Date.UTC(2026, 0, 5, 9, place),
    });
    ids.push(added.id);
    ({ token } = added);
  }
  await (await api.engine.tenant('default')).waitFor(token, 120_000);
});
afterAll(() => api.stop());

describe('query', () => {
  test.each(PROFILES)('--explain shows the formula of the profile %s', async (profile) => {
    const { code, stdout, stderr } = await cairn([
      'query',
      'ferry nine',
      '--profile',
      profile,
      '--explain',
      '--k',
      '1',
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const formulas = {
      composite: /composite +similarity +salience +recency +waypoint\n +value .*\n +× weight .*\n +=.* sum \d/,
      activation: /activation +activation +recency +strength +confidence\n +value .*\n +× weight .*\n +=.* sum \d/,
      retention: /retention +similarity +retention +alpha\n +value .* similarity × retention\^alpha = \d/,
      fusion: /fusion +rank +activation\n +value +\d+ +\d/,
    };
    expect(stdout).toMatch(formulas[profile]);
    expect(stdout).toMatch(/score +\d\.\d{3}, of raw \d\.\d{3} and certainty \d\.\d\d/);
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });

  test('--format prompt and text print what a language model is given', async () => {
    const prompt = await cairn(['query', 'ferry', '--user', 'ann', '--format', 'prompt']);
    expect(prompt.stdout).toMatch(
      /^Recalled memories follow\. .*\n\n## Relevant Context\n\n### Session trip\nKey facts:\n- \[/,
    );
    const text = await cairn(['query', 'ferry nine', '--format', 'text', '-k', '1']);
    expect(text.stdout.split('\n')[1]).toBe(
      `[memory ${ids[0]}, 2026-01-05, user ann, session trip] The ferry leaves at nine`,
    );
    expect(JSON.parse((await cairn(['query', 'ferry', '--format', 'json'])).stdout)).toHaveProperty('matches');
  });

  test('--as-of, --deep and --min-score reach the server', async () => {
    const found = async (...options: string[]) => {
      const { code, stdout, stderr } = await cairn(['query', 'ferry', '--user', 'ann', '--json', ...options]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return (JSON.parse(stdout) as { matches: { id: string }[] }).matches.map(({ id }) => id).sort();
    };
    expect(await found('--as-of', '2026-01-05T09:00:30Z')).toEqual([ids[0]]);
    expect(await found('--as-of', String(Date.UTC(2026, 0, 5)))).toEqual([]);
    expect(await found('--min-score', '1')).toEqual([]);
    await api.request('PATCH', `/memory/${ids[0]!}`, { body: { status: 'archived' } });
    expect(await found()).not.toContain(ids[0]);
    expect(await found('--deep')).toContain(ids[0]);
    await api.request('PATCH', `/memory/${ids[0]!}`, { body: { status: 'active' } });
  });

  test.each([
    [['--profile', 'best'], 'composite, activation, retention, fusion'],
    [['--format', 'xml'], 'json, prompt, text'],
    [['--min-score', '2'], '0..1'],
  ])('%j is an error of usage that says what is allowed', async (options, allowed) => {
    expect(await cairn(['query', 'x', ...options])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(allowed) as string,
    });
  });

  test('a year, a day or seconds for --as-of are refused, and what is allowed is said', async () => {
    for (const time of ['2026', '20260131', '1769817600'])
      expect(await cairn(['query', 'x', '--as-of', time])).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^cairn: as_of: expected an ISO 8601 date such as 2026-01-31, or mill/) as string,
      });
  });

  test('a time that the server does not understand is one line', async () => {
    expect(await cairn(['query', 'x', '--as-of', 'yesterday'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^cairn: as_of: expected a time.*\n$/) as string,
    });
  });
});

describe('timeline', () => {
  test('shows what stood around a memory, a line each', async () => {
    const { code, stdout } = await cairn(['timeline', ids[1]!, '--before', '1']);
    expect(code).toBe(0);
    expect(stdout.split('\n')).toEqual([
      '  2026-01-05 09:00  trip  The ferry leaves at nine',
      '▸ 2026-01-05 09:01  trip  From which pier does the ferry leave?',
      '  2026-01-05 09:02  trip  Pier four, beside the café',
      '',
    ]);
    expect(JSON.parse((await cairn(['timeline', ids[1]!, '--session', '--json'])).stdout)).toMatchObject({
      before: [{ id: ids[0] }],
      anchor: { id: ids[1] },
      after: [{ id: ids[2] }],
    });
  });

  test('an unknown memory is one line', async () => {
    expect(await cairn(['timeline', 'nothing'])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'cairn: no memory with this id\n',
    });
  });
});
