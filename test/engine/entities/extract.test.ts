import { describe, expect, test } from 'vitest';
import { extractGraph, possibleNames } from '../../../src/engine/entities/extract.ts';
import { MAX_ENTITIES } from '../../../src/engine/entities/named-things.ts';
import { MAX_RELATIONS } from '../../../src/engine/entities/relations.ts';
import { builtInMode, type EntityModeName } from '../../../src/engine/entities/modes.ts';
import { HOSTILE_SHAPES } from '../text/hostile-shapes.ts';

const graphOf = (text: string, mode: Exclude<EntityModeName, 'none'> = 'general', stated: readonly string[] = []) =>
  extractGraph(text, stated, builtInMode(mode)!);
const typesIn = (text: string, mode?: Exclude<EntityModeName, 'none'>) =>
  Object.fromEntries(graphOf(text, mode).entities.map(({ label, type }) => [label, type]));
const relationsIn = (text: string, mode?: Exclude<EntityModeName, 'none'>) =>
  graphOf(text, mode).relations.map(({ from, type, to }) => `${from} ${type} ${to}`);

describe('entities and their types', () => {
  test.each<[string, Record<string, string>]>([
    [
      'Maria moved our logging from Postgres to ClickHouse.',
      { Maria: 'person', logging: 'concept', Postgres: 'technology', ClickHouse: 'technology' },
    ],
    ['The form uses React Hook and Zod, see src/forms/login.tsx', { Zod: 'library', 'src/forms/login.tsx': 'file' }],
    [
      'Ask @bob about the Atlas project and the repository pattern.',
      {
        '@bob': 'person',
        Atlas: 'project',
        'repository pattern': 'pattern',
      },
    ],
    ['I talked to Dr. Okafor at Acme Corp.', { Okafor: 'person', 'Acme Corp': 'other' }],
    ['Our shipping gateway broke.', { shipping: 'concept' }],
    ['Restart the ledger service.', { 'ledger service': 'concept' }],
  ])('%s', (text, expected) => {
    expect(typesIn(text)).toMatchObject(expected);
  });

  test('spellings of one thing are one entity, as it was first written', () => {
    const { entities } = graphOf('Postgres is fine. PostgreSQL 17 is better than postgres 12.');
    expect(entities).toEqual([{ name: 'postgresql', label: 'Postgres', type: 'technology' }]);
  });

  test('a plain word is no name where it is not written as one', () => {
    expect(graphOf('We go to the spring, react slowly, and rust sets in. I had celery.').entities).toEqual([]);
    expect(typesIn('The service is in Go and the page in React.')).toEqual({ Go: 'technology', React: 'library' });
    expect(typesIn('Celery uses Redis.')).toEqual({ Celery: 'technology', Redis: 'technology' });
  });

  test('versions, dates, generic capitals and vague things name nothing', () => {
    expect(
      graphOf('Version 1.2.3 of the API came on Monday; the new service and the other module work.').entities,
    ).toEqual([]);
  });

  test('what the caller stated counts, whether or not the text holds it, and takes part in relations', () => {
    const { entities, relations } = graphOf('checkout flow uses fraudscore', 'general', ['fraudscore', 'Kiosk']);
    expect(entities.map(({ label }) => label)).toEqual(['fraudscore', 'Kiosk', 'checkout']);
    expect(relations).toEqual([{ from: 'checkout', type: 'uses', to: 'fraudscore' }]);
  });

  test('a name of several words is not taken apart by a concept in it, but by a technology', () => {
    expect(typesIn('We watched the Wedding Singer.')).toEqual({ 'Wedding Singer': 'other' });
    expect(typesIn('It is the PostgreSQL Database.')).toEqual({ PostgreSQL: 'technology' });
  });

  test('the mode decides the types: the nearest it has, or none', () => {
    const text = 'The ledger service calls parseInvoice() in src/ledger.ts, said Maria from Stanford University.';
    expect(typesIn(text, 'code')).toMatchObject({ 'ledger service': 'service', parseInvoice: 'symbol' });
    expect(typesIn(text, 'general')).toMatchObject({ 'ledger service': 'concept', parseInvoice: 'other' });
    expect(typesIn(text, 'research')).toEqual({
      'ledger service': 'concept',
      Maria: 'person',
      'Stanford University': 'organisation',
    });
  });

  test('an abbreviation that names nothing by itself is an entity if the caller stated it', () => {
    expect(graphOf('HR wrote to us.').entities).toEqual([]);
    expect(graphOf('HR wrote to us.', 'general', ['HR']).entities).toEqual([
      { name: 'hr', label: 'HR', type: 'other' },
    ]);
  });

  test('scripts without capitals give what is stated or written as an identifier', () => {
    const { entities } = graphOf('我们在项目中使用 Redis 和 src/队列.ts，由小明负责。', 'general', ['小明']);
    expect(entities.map(({ label }) => label)).toEqual(expect.arrayContaining(['小明', 'Redis']));
    expect(typesIn('Мария Иванова пишет на Python.')).toMatchObject({ Python: 'technology' });
  });

  test('there are at most 32, and any text is looked at in linear time', () => {
    const many = Array.from(
      { length: 100 },
      (_, at) => `we met Zor${'abcdefghij'[at % 10]}${'klmnopqrst'[Math.floor(at / 10)]}a`,
    );
    const { entities, relations } = graphOf(many.join(' and '));
    expect(entities).toHaveLength(MAX_ENTITIES);
    expect(relations.length).toBeLessThanOrEqual(MAX_RELATIONS);
    for (const shape of Object.values(HOSTILE_SHAPES)) {
      const text = shape(200_000);
      expect(graphOf(text, 'general', [text.slice(0, 100)]).entities.length).toBeLessThanOrEqual(MAX_ENTITIES);
      expect(possibleNames(text).length).toBeLessThanOrEqual(100);
    }
  });
});

describe('relations', () => {
  test.each([
    ['Authentication uses JWT.', ['authentication uses jwt']],
    ['We use JWT for authentication', ['authentication uses jwt']],
    ['JWT is used for authentication', ['authentication uses jwt']],
    ['The authentication service is now using signed JWT tokens', ['authentication uses jwt']],
    ['Grafana depends on Prometheus.', ['grafana depends_on prometheus']],
    ['Next.js is built on top of React', ['next.js depends_on react']],
    ['src/store.ts implements the repository pattern', ['src/store.ts implements repository pattern']],
    ['TypeScript extends JavaScript', ['typescript extends javascript']],
    ['We migrated from MySQL to PostgreSQL.', ['postgresql replaces mysql']],
    ['Last week the team switched to pnpm from npm', ['pnpm replaces npm']],
    ['Webpack was replaced by Vite', ['vite replaces webpack']],
    ['logging is configured in config/log.yaml', ['config/log.yaml configures logging']],
    ['Maria works on the Atlas project', ['maria related_to atlas']],
    [
      'Grafana and Kibana use PostgreSQL and Redis',
      ['grafana uses postgresql', 'kibana uses postgresql', 'grafana uses redis', 'kibana uses redis'],
    ],
    ['billing uses Stripe, which depends on PostgreSQL', ['billing uses stripe', 'stripe depends_on postgresql']],
  ])('%s', (text, expected) => {
    expect(relationsIn(text).toSorted()).toEqual(expected.toSorted());
  });

  test.each([
    'Authentication does not use JWT.',
    "We don't use JWT for authentication.",
    'Should we use JWT for authentication?',
    'Authentication might use JWT.',
    'I like authentication. Uses of JWT vary.',
    'Redis, PostgreSQL and Grafana are down.',
    'Authentication is slow; JWT is fast.',
    'Redis is better known than Grafana.',
  ])('none is read into: %s', (text) => {
    expect(relationsIn(text)).toEqual([]);
  });

  describe.each([8, 9, 10, 12])('an enumeration of %i members', (count) => {
    const members = ['Kafka', 'Redis', 'Grafana', 'Kibana', 'MySQL', 'SQLite', 'Prometheus', 'Elasticsearch']
      .concat(['MongoDB', 'Nginx', 'Terraform', 'Kubernetes'])
      .slice(0, count);
    const names = members.map((member) => member.toLowerCase());

    test('before a relation: its first eight take part', () => {
      expect(relationsIn(`${members.join(', ')} use PostgreSQL.`)).toEqual(
        names.slice(0, 8).map((name) => `${name} uses postgresql`),
      );
    });

    test('after a relation: all take part', () => {
      expect(relationsIn(`PostgreSQL uses ${members.join(', ')}.`)).toEqual(
        names.map((name) => `postgresql uses ${name}`),
      );
    });
  });

  test('a list that does not end states no more than others', () => {
    const list = 'Redis and Grafana and Kibana and MySQL and '.repeat(90);
    const { relations } = graphOf(`${list} SQLite use ${list} Kafka`);
    expect(relations.length).toBeLessThanOrEqual(MAX_RELATIONS);
  });

  test('a mode has its own', () => {
    expect(relationsIn('BM25 outperforms TF-IDF on the Cranfield corpus', 'research')).toContain(
      'bm25 outperforms tf-idf',
    );
    expect(relationsIn('BM25 outperforms TF-IDF', 'general')).toEqual([]);
    expect(relationsIn('the ledger service calls parseInvoice', 'code')).toEqual(['ledger service calls parseinvoice']);
  });
});

test('a query may name a thing by any of its spellings, without capitals', () => {
  expect(possibleNames('how does k8s reach the ledger service?')).toEqual(
    expect.arrayContaining(['kubernetes', 'ledger service']),
  );
  expect(possibleNames('小明的公司')).toContain('小明');
  expect(possibleNames('what is it')).toEqual([]);
});
