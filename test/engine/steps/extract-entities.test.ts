import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { rebuildEntities } from '../../../src/engine/admin/rebuild-entities.ts';
import { readConfig } from '../../../src/engine/config.ts';
import { EngineError } from '../../../src/engine/errors.ts';
import { cleanAfterErase } from '../../../src/engine/upkeep/clean-after-erase.ts';
import { runBatch } from '../../../src/engine/batches/run-batch.ts';
import type { LanguageModel } from '../../../src/engine/ports.ts';
import { dumpTables, expectNoOrphans, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const entitiesOf = (fixture: TestEngine) =>
  fixture.all<{ name: string; type: string; mentions: number }>(
    'SELECT name, type, mentions FROM entities ORDER BY name',
  );
const relationsOf = (fixture: TestEngine) =>
  fixture
    .all<{ src: string; relation: string; dst: string; memory: number }>(
      `SELECT a.name AS src, r.relation, b.name AS dst, r.memory FROM entity_relations r
       JOIN entities a ON a.entity_no = r.src JOIN entities b ON b.entity_no = r.dst ORDER BY 1, 2, 3, 4`,
    )
    .map(({ src, relation, dst, memory }) => `${memory}: ${src} ${relation} ${dst}`);

describe('the encode step', () => {
  test('writes what a memory mentions and states, title and stated names included, and counts who mentions it', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({
      content: 'Authentication uses JWT.',
      title: 'Notes on Kubernetes',
      entities: ['Checkout team'],
    });
    await fixture.add({ content: 'A JWT expired.' });
    expect(entitiesOf(fixture)).toEqual([]);
    await fixture.drain();
    expect(entitiesOf(fixture)).toEqual([
      { name: 'authentication', type: 'concept', mentions: 1 },
      { name: 'checkout team', type: 'other', mentions: 1 },
      { name: 'jwt', type: 'technology', mentions: 2 },
      { name: 'kubernetes', type: 'technology', mentions: 1 },
    ]);
    expect(relationsOf(fixture)).toEqual(['1: authentication uses jwt']);
    expectNoOrphans(fixture.store);
  });

  test('that runs twice comes to the same end', async () => {
    await using fixture = await openTestEngine();
    const { jobId } = await fixture.add({ content: 'Grafana and Kibana use PostgreSQL.' });
    await fixture.add({ content: 'Kibana is slow.' });
    await fixture.drain();
    const graph = () => [entitiesOf(fixture), relationsOf(fixture)];
    const once = graph();
    fixture.store.db
      .prepare(`UPDATE jobs SET step = 'encode', state = 'queued', finished_at = NULL WHERE id = ?`)
      .run(jobId);
    expect(await fixture.drain()).toBeGreaterThan(0);
    expect(graph()).toEqual(once);
    expectNoOrphans(fixture.store);
  });

  test('takes whatever somebody states as a name', async () => {
    await using fixture = await openTestEngine();
    const strange = [
      'a\0b',
      'a\0c',
      'a b',
      '\ud800',
      '\udfff',
      '\uff21\uff22',
      'ab',
      '',
      ' ',
      'İ'.repeat(128),
      "'; --",
      '"',
      '[1]',
    ];
    const { id } = await fixture.add({ content: 'a b uses a c. AB uses Redis.', entities: strange });
    await fixture.drain();
    expect((await fixture.tenant.getMemory(id)).state).toBe('ready');
    expect(relationsOf(fixture)).toContain('1: ab uses redis');
    expectNoOrphans(fixture.store);
  });

  test('keeps the names of each user apart', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: 'Redis is down.', userId: 'ann' });
    await fixture.add({ content: 'Redis is up.', userId: 'bob' });
    await fixture.drain();
    expect(entitiesOf(fixture).map(({ mentions }) => mentions)).toEqual([1, 1]);
  });

  test('writes no graph where none is wanted', async () => {
    await using fixture = await openTestEngine({ settings: { OM_ENTITY_MODE: 'none' } });
    const { id } = await fixture.add({ content: 'Authentication uses JWT.' });
    await fixture.drain();
    expect(entitiesOf(fixture)).toEqual([]);
    expect((await fixture.tenant.getMemory(id)).state).toBe('ready');
  });
});

describe('a patch', () => {
  test('takes the names of the old text away at once and finds those of the new one', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'Grafana depends on Prometheus.' });
    await fixture.add({ content: 'Prometheus is full.' });
    await fixture.drain();
    await fixture.tenant.patchMemory(id, { content: 'Kibana depends on Elasticsearch.' });
    expect(entitiesOf(fixture)).toEqual([{ name: 'prometheus', type: 'technology', mentions: 1 }]);
    await fixture.drain();
    expect(relationsOf(fixture)).toEqual(['1: kibana depends_on elasticsearch']);
    expectNoOrphans(fixture.store);
  });

  test('of the stated names alone is enough', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'It rained.', entities: ['Porto'] });
    await fixture.drain();
    await fixture.tenant.patchMemory(id, { entities: ['Lisbon'] });
    await fixture.drain();
    expect(entitiesOf(fixture)).toEqual([{ name: 'lisbon', type: 'other', mentions: 1 }]);
  });
});

describe('a delete', () => {
  test('leaves no name that nobody else mentions, in no row and in no byte of the file', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'The Zanzibarkanari project uses Redis.', entities: ['Statedkanari'] });
    await fixture.add({ content: 'Redis is down.' });
    await fixture.drain();
    expect(entitiesOf(fixture)).toHaveLength(3);
    await fixture.tenant.deleteMemory(id);
    expect(entitiesOf(fixture)).toEqual([{ name: 'redis', type: 'technology', mentions: 1 }]);
    expect(relationsOf(fixture)).toEqual([]);
    expectNoOrphans(fixture.store);
    await fixture.drain();
    await cleanAfterErase(fixture.maintenance);
    const files = [fixture.file, `${fixture.file}-wal`].filter((name) => fs.existsSync(name));
    for (const file of files) expect(fs.readFileSync(file).toString('latin1')).not.toMatch(/kanari/i);
  });

  test('takes its spelling of a name and its type with it: what is left is written as the others write it', async () => {
    await using fixture = await openTestEngine();
    const first = await fixture.add({ content: 'Noted.', entities: ['Über-Geheim Müller'] });
    await fixture.add({ content: 'Noted, too.', entities: ['uber-geheim muller'] });
    await fixture.add({ content: 'Noted again.', entities: ['UBER-GEHEIM MULLER'] });
    await fixture.drain();
    const labels = () => fixture.all('SELECT label, type, mentions FROM entities');
    expect(labels()).toEqual([{ label: 'Über-Geheim Müller', type: 'other', mentions: 3 }]);
    fixture.store.write(() => {
      // As a model might have said of the first one alone.
      fixture.store.prepare("UPDATE entity_mentions SET type = 'person' WHERE memory = ?").run(first.memoryNo);
      fixture.store.prepare("UPDATE entities SET type = 'person'").run();
    });
    await fixture.tenant.deleteMemory(first.id);
    expect(labels()).toEqual([{ label: 'uber-geheim muller', type: 'other', mentions: 2 }]);
    expect(JSON.stringify(dumpTables(fixture.store))).not.toContain('Geheim M\u00fc');
  });

  test('of everything leaves an empty graph', async () => {
    await using fixture = await openTestEngine();
    for (let at = 0; at < 5; at++) {
      await fixture.add({ content: `Grafana ${at} and Kibana use PostgreSQL and Redis.`, userId: 'ann' });
    }
    await fixture.drain();
    await fixture.tenant.deleteMemories({ userIds: ['ann'] });
    for (const table of ['entities', 'entity_mentions', 'entity_relations']) {
      expect(fixture.get(`SELECT count(*) FROM ${table}`)).toBe(0);
    }
    expectNoOrphans(fixture.store);
  });
});

test('a rebuild makes the same graph again, or that of another mode', async () => {
  await using fixture = await openTestEngine();
  await fixture.add({ content: 'The ledger service calls parseInvoice.' });
  await fixture.add({ content: 'BM25 outperforms TF-IDF, says Maria.', userId: 'ann' });
  await fixture.drain();
  const graph = () => {
    const { entities, entity_mentions, entity_relations } = dumpTables(fixture.store);
    return { entities, entity_mentions, entity_relations };
  };
  const before = graph();
  rebuildEntities(fixture.store, fixture.batch.config.entityMode);
  expect(graph()).toEqual(before);
  rebuildEntities(fixture.store, readConfig({ OM_ENTITY_MODE: 'research' }).entityMode);
  expect(relationsOf(fixture)).toContain('2: bm25 outperforms tf-idf');
  rebuildEntities(fixture.store, null);
  expect(entitiesOf(fixture)).toEqual([]);
});

describe('a language model', () => {
  const LLM = { OM_ENTITY_EXTRACTION: 'llm', OM_LLM_MODEL: 'test', OM_LLM_BASE_URL: 'http://127.0.0.1:9' };
  /** The worker's batch with a model that answers like this. */
  const workOff = async (fixture: TestEngine, answer: (input: string) => string) => {
    const asked: { instructions: string; input: string }[] = [];
    const languageModel: LanguageModel = {
      provider: 'test',
      model: 'test',
      async complete(request) {
        asked.push(request);
        return { text: answer(request.input), inputTokens: 1, outputTokens: 1 };
      },
    };
    while ((await runBatch({ ...fixture.batch, languageModel }, 64)).claimed > 0);
    return asked;
  };

  test('is asked for the types of the mode, and only what the text can vouch for is kept', async () => {
    await using fixture = await openTestEngine({ settings: LLM });
    await fixture.add({ content: 'Our gatekeeper speaks to the badge reader.', entities: ['HQ'] });
    const asked = await workOff(fixture, () =>
      JSON.stringify({
        entities: [
          { name: 'gatekeeper', type: 'technology' },
          { name: 'badge reader', type: 'technology' },
          { name: 'Redis', type: 'technology' }, // not in the text
          { name: 'speaks', type: 'verb' }, // no type of the mode
        ],
        relations: [
          { source: 'Gatekeeper', relation: 'uses', target: 'badge reader' },
          { source: 'gatekeeper', relation: 'speaks_to', target: 'badge reader' },
          { source: 'gatekeeper', relation: 'uses', target: 'Redis' },
        ],
      }),
    );
    expect(entitiesOf(fixture).map(({ name }) => name)).toEqual(['badge reader', 'gatekeeper', 'hq']);
    expect(relationsOf(fixture)).toEqual(['1: gatekeeper uses badge reader']);
    expect(asked).toHaveLength(1);
    expect(asked[0]!.instructions).toContain('technology, library, pattern');
    expect(asked[0]!.instructions).not.toContain('gatekeeper');
    expect(asked[0]!.input).toMatch(/^<<<text (\w+)>>>\nOur gatekeeper[^]*\n<<<end \1>>>$/);
    expectNoOrphans(fixture.store);
  });

  test.each<[string, () => string]>([
    ['no JSON', () => 'Sure! I found JWT.'],
    ['other JSON', () => '["JWT"]'],
    ['half of it', () => '{"entities": []}'],
    ['a refusal', () => 'I cannot help with that.'],
    [
      'an outage',
      () => {
        throw new EngineError('unavailable', 'the provider is down');
      },
    ],
  ])('that answers with %s leaves it to the patterns', async (_, answer) => {
    await using fixture = await openTestEngine({ settings: LLM });
    const { id } = await fixture.add({ content: 'Authentication uses JWT.' });
    await workOff(fixture, answer);
    expect(relationsOf(fixture)).toEqual(['1: authentication uses jwt']);
    expect((await fixture.tenant.getMemory(id)).state).toBe('ready');
  });

  test('that is down is not asked about each memory of a batch', async () => {
    await using fixture = await openTestEngine({ settings: LLM });
    for (let at = 0; at < 40; at++) await fixture.add({ content: `Kibana ${at} uses Elasticsearch.` });
    const asked = await workOff(fixture, () => {
      throw new EngineError('unavailable', 'the provider is down');
    });
    expect(asked.length).toBeLessThanOrEqual(4);
    expect(entitiesOf(fixture).map(({ mentions }) => mentions)).toEqual([40, 40]);
  });

  test('is not used where a stop came between: the job waits for the next worker', async () => {
    await using fixture = await openTestEngine({ settings: LLM });
    const { id } = await fixture.add({ content: 'Authentication uses JWT.' });
    const stop = new AbortController();
    const languageModel: LanguageModel = {
      provider: 'test',
      model: 'test',
      complete() {
        stop.abort();
        return Promise.reject(new EngineError('unavailable', 'aborted'));
      },
    };
    await runBatch({ ...fixture.batch, languageModel }, 64, stop.signal);
    expect((await fixture.tenant.getMemory(id)).state).toBe('queued');
    await workOff(fixture, () => '{"entities": [], "relations": []}');
    expect((await fixture.tenant.getMemory(id)).state).toBe('ready');
    expect(entitiesOf(fixture)).toEqual([]);
  });
});

describe('settings', () => {
  const problemOf = (environment: Record<string, string>) => {
    try {
      readConfig(environment);
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };

  test('are checked with what they need', () => {
    expect(problemOf({ OM_ENTITY_EXTRACTION: 'llm' })).toMatch(/OM_ENTITY_EXTRACTION=llm: needs .* OM_LLM_MODEL/);
    expect(problemOf({ OM_ENTITY_MODE: 'everything' })).toMatch(/OM_ENTITY_MODE=everything/);
    expect(problemOf({ OM_ENTITY_MODE_FILE: '/nowhere/mode.json' })).toMatch(/OM_ENTITY_MODE_FILE=.*ENOENT/);
    expect(readConfig({}).entityMode?.name).toBe('general');
    expect(readConfig({ OM_ENTITY_MODE: 'none' }).entityMode).toBeNull();
  });

  test('a file of types is read at the start, and its problems name the setting', async () => {
    const file = path.join(tempFolder(), 'mode.json');
    fs.writeFileSync(file, '{"entity_types": ["Drug"]}');
    expect(problemOf({ OM_ENTITY_MODE_FILE: file })).toMatch(
      /OM_ENTITY_MODE_FILE=.*: entity_types\.0: .*relation_types/,
    );
    expect(problemOf({ OM_ENTITY_MODE_FILE: file, OM_ENTITY_MODE: 'none' })).toMatch(/leave one of them out/);
    fs.writeFileSync(file, '{"entity_types": ["drug"], "relation_types": [], "lexicon": {"drug": ["Aspirin"]}}');
    await using fixture = await openTestEngine({ settings: { OM_ENTITY_MODE_FILE: file } });
    await fixture.add({ content: 'Redis and aspirin.' });
    await fixture.drain();
    expect(entitiesOf(fixture)).toEqual([{ name: 'aspirin', type: 'drug', mentions: 1 }]);
  });
});
