import fs from 'node:fs';
import path from 'node:path';
import { parseEnv } from 'node:util';
import { describe, expect, test } from 'vitest';
import { isLoopback, listSettings, readConfig, settingsSchema } from '../../src/engine/config.ts';
import { EngineError } from '../../src/engine/errors.ts';

type Name = keyof typeof settingsSchema.shape;
const NAMES = Object.keys(settingsSchema.shape) as Name[];

/** Smallest and largest value allowed. */
const BOUNDS: Partial<Record<Name, readonly [min: number, max: number]>> = {
  OM_PORT: [0, 65_535],
  OM_VEC_DIM: [64, 4096],
  OM_MIN_SCORE: [0, 1],
  OM_MAX_WRONG_KEYS: [1, 1_000_000],
  OM_ADD_WAIT_MS: [0, 60_000],
  OM_READER_TIMEOUT_MS: [100, 3_600_000],
  OM_MAX_CONNECTIONS: [2, 1_000_000],
  OM_LG_MAX_CONTEXT: [1, 200],
  OM_RATE_QUERIES: [0, 1_000_000_000],
  OM_RATE_ADDS: [0, 1_000_000_000],
  OM_RATE_BATCH_ITEMS: [0, 1_000_000_000],
  OM_RATE_UPLOAD_MB: [0, 1_000_000],
  OM_TENANT_EVENT_STREAMS: [0, 1_000],
  OM_TENANT_PARSE_SECONDS: [0, 1_000_000],
  OM_TENANT_FETCHES: [0, 1_000_000],
  OM_TENANT_FETCHES_AT_ONCE: [0, 10_000],
  OM_TENANT_MAX_MB: [0, 100_000_000],
  OM_TENANT_MAX_MEMORIES: [0, 1_000_000_000],
  OM_PII_TIMEOUT_MS: [50, 60_000],
  OM_PII_MIN_SCORE: [0, 1],
  OM_EMBED_TIMEOUT_MS: [100, 600_000],
  OM_EMBED_DELAY_MS: [0, 60_000],
  OM_EMBED_BATCH_TEXTS: [1, 2048],
  OM_EMBED_BATCH_TOKENS: [512, 300_000],
  OM_EMBED_LINGER_MS: [0, 1000],
  OM_EMBED_RPM: [0, 1_000_000],
  OM_EMBED_TPM: [0, 1_000_000_000],
  OM_EMBED_CONCURRENCY: [1, 64],
  OM_QUERY_EMBED_TIMEOUT_MS: [10, 60_000],
  OM_QUERY_CACHE: [0, 100_000],
  OM_LLM_CACHE: [0, 100_000],
  OM_LLM_TIMEOUT_MS: [100, 600_000],
  OM_LLM_RPM: [0, 1_000_000],
  OM_LLM_TPM: [0, 1_000_000_000],
  OM_LLM_RERANK_TIMEOUT_MS: [10, 60_000],
  OM_REFLECTION_INTERVAL_MINUTES: [1, 525_600],
  OM_REFLECTION_MIN_MEMORIES: [2, 10_000],
  OM_CONSOLIDATION_INTERVAL_MINUTES: [1, 525_600],
  OM_CHUNK_TOKENS: [64, 8192],
  OM_CHUNK_OVERLAP_TOKENS: [0, 4096],
  OM_UPLOAD_MAX_MB: [1, 1024],
  OM_UPLOADS_MAX_MB: [1, 1_000_000],
  OM_PARSERS: [1, 32],
  OM_PARSE_TIMEOUT_MS: [1000, 600_000],
  OM_PARSE_HEAP_MB: [128, 8192],
  OM_URL_TIMEOUT_MS: [100, 300_000],
  OM_URL_MAX_MB: [1, 100],
  OM_DECAY_LAMBDA: [0, 10],
  OM_DECAY_INTERVAL_MINUTES: [1, 525_600],
  OM_REINFORCE_PER_HOUR: [0, 1],
  OM_ARCHIVE_BELOW: [0, 1],
  OM_METRICS_PORT: [0, 65_535],
  OM_WORKER_METRICS_PORT: [0, 65_535],
  OM_AUDIT_DAYS: [1, 36_500],
  OM_JOB_ATTEMPTS: [1, 100],
  OM_JOB_RETENTION_HOURS: [1, 8760],
  OM_LEASE_MS: [500, 600_000],
  OM_SHUTDOWN_MS: [100, 300_000],
  OM_API_PROCESSES: [1, 64],
  OM_QUERY_THREADS: [0, 64],
  OM_QUERY_WORK_MB: [1, 65_536],
  OM_QUERY_DEADLINE_MS: [100, 50_000],
  OM_OPEN_TENANTS: [1, 10_000],
  OM_INDEX_MEMORY_MB: [16, 1_000_000],
  OM_MAX_BACKLOG: [1, 100_000_000],
  OM_BACKUP_KEEP: [1, 10_000],
  OM_EVENT_DAYS: [1, 3_650],
  OM_EVENT_ROWS: [1_000, 1_000_000_000],
  OM_WEBHOOK_ATTEMPTS: [1, 20],
  OM_FEDERATION_TIMEOUT_MS: [100, 60_000],
  OM_RECEIPT_DAYS: [1, 3_650],
  OM_RECALL_DAYS: [0, 3_650],
  OM_RECALL_MB: [1, 1_000_000],
};
const FRACTIONS: readonly Name[] = [
  'OM_MIN_SCORE',
  'OM_PII_MIN_SCORE',
  'OM_DECAY_LAMBDA',
  'OM_REINFORCE_PER_HOUR',
  'OM_ARCHIVE_BELOW',
];
const bounds = Object.entries(BOUNDS) as [Name, readonly [number, number]][];

/**
 * With words only, no cross-check looks at the dimensions; nor at a chunk that is large, or repeats nothing; nor at a
 * port that has an address.
 */
const UNCHECKED = {
  OM_EMBEDDINGS: 'none',
  OM_CHUNK_TOKENS: '8192',
  OM_CHUNK_OVERLAP_TOKENS: '0',
  OM_METRICS_HOST: '127.0.0.1',
};

function read(environment: Record<string, string | undefined>) {
  return readConfig({ ...UNCHECKED, ...environment });
}

function problemsOf(environment: Record<string, string | undefined>): readonly string[] {
  try {
    readConfig(environment);
  } catch (error) {
    expect(error).toBeInstanceOf(EngineError);
    const { code, message, details } = error as EngineError;
    expect(code).toBe('invalid');
    for (const problem of details ?? []) expect(message).toContain(problem);
    return details ?? [];
  }
  return [];
}

describe('defaults', () => {
  test('.env.example lists every setting in the order of the schema, each under its description', () => {
    const lines = fs.readFileSync(path.resolve(import.meta.dirname, '../../.env.example'), 'utf8').split('\n');
    const listed = lines.flatMap((line, index) => {
      const name = /^([A-Z_]+)=/.exec(line)?.[1];
      return name === undefined ? [] : [[name, lines[index - 1]]];
    });
    expect(listed).toEqual(NAMES.map((name) => [name, `# ${settingsSchema.shape[name].description}`]));
  });

  test('.env.example taken as it is means the defaults', () => {
    const example = parseEnv(fs.readFileSync(path.resolve(import.meta.dirname, '../../.env.example'), 'utf8'));
    const config = readConfig({});
    expect({ ...readConfig(example), given: [] }).toEqual(config);
    for (const name of NAMES) expect(example[name], name).toBe(String(config[name] ?? ''));
  });

  test('an unset, empty or blank variable means the default; other variables mean nothing', () => {
    const config = readConfig({});
    expect(readConfig(Object.fromEntries(NAMES.map((name) => [name, ''])))).toEqual(config);
    expect(readConfig(Object.fromEntries(NAMES.map((name) => [name, ' \t'])))).toEqual(config);
    expect(readConfig({ OM_NO_SUCH_SETTING: 'x', PATH: 'y', OM_PORT: undefined })).toEqual(config);
  });

  test('they need no network, key or Redis, and listen on this machine only', () => {
    expect(readConfig({})).toMatchObject({
      OM_HOST: '127.0.0.1',
      OM_PORT: 8080,
      OM_EMBEDDINGS: 'synthetic',
      OM_VEC_DIM: 768,
      OM_PUBLIC_READS: false,
    });
    expect(readConfig({})).not.toHaveProperty('OM_API_KEY');
  });

  test('the settings cannot be changed afterwards', () => {
    const config = readConfig({});
    expect(() => Object.assign(config, { OM_PORT: 1 })).toThrow(TypeError);
    expect(() => Object.assign(config.paths, { lock: 'x' })).toThrow(TypeError);
  });
});

describe('values', () => {
  test('every number has bounds that are tested here', () => {
    const isNumber = (name: Name) => {
      if (name === 'OM_BACKUP_EVERY' || name === 'OM_EVAL_EVERY') return false; // Durations, with a test of their own.
      const field = settingsSchema.shape[name];
      return typeof field.safeParse(String(field.parse(undefined) ?? 1)).data === 'number';
    };
    expect(NAMES.filter(isNumber)).toEqual(Object.keys(BOUNDS));
  });

  test.each(bounds)('%s takes its least and largest value and refuses one beyond', (name, [min, max]) => {
    expect(read({ [name]: String(min) })[name]).toBe(min);
    expect(read({ [name]: ` ${max} ` })[name]).toBe(max);
    for (const wrong of [min - 1, max + 1, 'many', '0x50', '1e999', 'NaN', '5 ms']) {
      const [problem, ...others] = problemsOf({ ...UNCHECKED, [name]: String(wrong) });
      expect(problem).toContain(`${name}=${wrong}: `);
      expect(others).toEqual([]);
    }
    expect(problemsOf({ [name]: String(max + 1) })[0]).toContain(`${min}..${max}`);
    const half = String(min + 0.5);
    if (FRACTIONS.includes(name)) expect(read({ [name]: half })[name]).toBe(min + 0.5);
    else expect(problemsOf({ [name]: half })[0]).toContain(`${name}=${half}: `);
  });

  test('a duration is in hours, or has a unit', () => {
    const everyOf = (text: string) =>
      readConfig({ OM_BACKUP_EVERY: text, OM_BACKUP_FOLDER: '/backup' }).OM_BACKUP_EVERY;
    expect(['24', '6h', '5m', '365d', ' 1d '].map(everyOf)).toEqual(
      [24, 6, 1 / 12, 8_760, 24].map((h) => h * 3_600_000),
    );
    for (const text of ['4m', '366d', '0', '-1h', '1.5h', '6 h', '1w', 'daily']) {
      expect(problemsOf({ OM_BACKUP_EVERY: text, OM_BACKUP_FOLDER: '/backup' })).toEqual([
        `OM_BACKUP_EVERY=${text}: expected hours, or a duration such as 30m, 6h or 1d`,
      ]);
    }
  });

  test('a period of evaluation sets is a duration, too', () => {
    expect(readConfig({ OM_EVAL_EVERY: '6h' }).OM_EVAL_EVERY).toBe(6 * 3_600_000);
    expect(problemsOf({ OM_EVAL_EVERY: 'daily' })[0]).toContain('OM_EVAL_EVERY=daily: expected hours');
  });

  test('a duration is shown as it would be written', () => {
    const shownOf = (text: string) => {
      const config = readConfig({ OM_BACKUP_EVERY: text, OM_BACKUP_FOLDER: '/backup', OM_EVAL_EVERY: text });
      const of = (name: string) => listSettings(config).find((setting) => setting.name === name)?.value;
      return [of('OM_BACKUP_EVERY'), of('OM_EVAL_EVERY')];
    };
    for (const [written, shown] of Object.entries({ '6': '6h', '90m': '90m', '24h': '1d', '365d': '365d' }))
      expect(shownOf(written)).toEqual([shown, shown]);
  });

  test('scheduled backups need a period and a folder', () => {
    expect(problemsOf({ OM_BACKUP_EVERY: '24' })[0]).toContain('OM_BACKUP_FOLDER is not set');
    expect(problemsOf({ OM_BACKUP_FOLDER: '/backup' })[0]).toContain('OM_BACKUP_EVERY is not set');
  });

  test('0 and false are values, not "unset"', () => {
    const config = readConfig({
      OM_PORT: '0',
      OM_DECAY_LAMBDA: '0',
      OM_EMBED_LINGER_MS: '0',
      OM_DECAY_REINFORCE_ON_QUERY: 'false',
    });
    expect(config).toMatchObject({
      OM_PORT: 0,
      OM_DECAY_LAMBDA: 0,
      OM_EMBED_LINGER_MS: 0,
      OM_DECAY_REINFORCE_ON_QUERY: false,
    });
  });

  test('a switch is true, false, 1 or 0', () => {
    for (const name of ['OM_PUBLIC_READS', 'OM_DECAY_REINFORCE_ON_QUERY'] as const) {
      for (const text of ['true', '1']) expect(readConfig({ [name]: text })[name]).toBe(true);
      for (const text of ['false', '0']) expect(readConfig({ [name]: text })[name]).toBe(false);
      for (const text of ['yes', 'TRUE', '2']) {
        expect(problemsOf({ [name]: text })).toEqual([`${name}=${text}: expected true or false`]);
      }
    }
  });

  test('a choice names what is allowed', () => {
    expect(problemsOf({ OM_EMBEDDINGS: 'magic' })[0]).toMatch(/^OM_EMBEDDINGS=magic: .*synthetic.*openai.*none/);
    expect(problemsOf({ OM_LOG_LEVEL: 'loud' })[0]).toMatch(/^OM_LOG_LEVEL=loud: .*silent.*debug/);
    expect(problemsOf({ OM_OPENAI_BASE_URL: 'not a url' })[0]).toMatch(/^OM_OPENAI_BASE_URL=\(hidden\): /);
  });

  test.each(['OPEN_MEM_RERANKING', 'OPEN_MEM_RERANKING_MAX_CANDIDATES', 'OPEN_MEM_ENTITY_EXTRACTION'])(
    'a setting of another program that nobody reads stops the start: %s',
    (name) => {
      expect(problemsOf({ [name]: 'true' })).toEqual([expect.stringMatching(`^${name}: .*remove it, and `)]);
      expect(readConfig({ [name]: ' ' }).OM_PORT).toBe(8080);
    },
  );

  test('several wrong settings are all named', () => {
    const problems = problemsOf({ OM_PORT: '65536', OM_MIN_SCORE: '2', OM_LOG_LEVEL: 'loud', OM_API_KEY: 'short' });
    expect(problems.map((problem) => problem.split('=')[0])).toEqual([
      'OM_PORT',
      'OM_API_KEY',
      'OM_LOG_LEVEL',
      'OM_MIN_SCORE',
    ]);
  });

  test('further databases have names and addresses of their own, and no address is shown', () => {
    const home = { OM_DATABASE_URL: 'postgres://cairn:secret@db.example.org/cairn' };
    const [eu, us] = ['postgres://cairn:secret,1@eu.example.org/a', 'postgresql://cairn@us.example.org/b'];
    const escaped = eu.replace(',', '%2C');
    const config = readConfig({ ...home, OM_DATABASES: `eu=${escaped}, us-1=${us}` });
    expect(config.databases).toEqual({ eu: escaped, 'us-1': us });
    expect(listSettings(config).find(({ name }) => name === 'OM_DATABASES')).toMatchObject({
      ...{ value: null, isHidden: true },
    });
    expect(readConfig(home).databases).toEqual({});
    for (const wrong of [
      'eu',
      `=${us}`,
      `EU=${us}`,
      `home=${us}`,
      `eu=${us},eu=${escaped}`,
      `eu=${us},us=${us}`,
      `eu=${eu}`,
    ]) {
      const [problem, ...others] = problemsOf({ ...home, OM_DATABASES: wrong });
      expect(problem).toMatch(/^OM_DATABASES=\(hidden\): expected name=postgres:/);
      expect(others).toEqual([]);
    }
    expect(problemsOf({ OM_DATABASES: `eu=${us}` })).toEqual([expect.stringMatching(/needs OM_DATABASE_URL/)]);
    expect(problemsOf({ ...home, OM_DATABASES: `eu=${home.OM_DATABASE_URL}` })).toEqual([
      expect.stringMatching(/^OM_DATABASES: has the database of OM_DATABASE_URL/),
    ]);
  });

  test('a key is at least 16 characters long, not easily guessed, and never repeated', () => {
    expect(readConfig({ OM_API_KEY: 'VkT2l8Qm0sXw3rY5' }).OM_API_KEY).toBe('VkT2l8Qm0sXw3rY5');
    expect(problemsOf({ OM_API_KEY: 'VkT2l8Qm0sXw3rY' }).join()).toMatch(/^OM_API_KEY=\(hidden\): .*at least 16/);
    expect(problemsOf({ OM_API_KEY: 'changeme-changeme' }).join()).toMatch(/^OM_API_KEY=\(hidden\): .*guessed/);
    for (const OM_TRUSTED_PROXIES of ['proxy', '10.0.0.0/33', '10.0.0.0/8/8'])
      expect(problemsOf({ OM_TRUSTED_PROXIES }).join()).toMatch(/OM_TRUSTED_PROXIES=.*10\.0\.0\.0\/8/);
    expect(problemsOf({ OM_PORT: 'x', OM_API_KEY: 'a long secret', OPENAI_API_KEY: 'sk-secret' }).join()).not.toMatch(
      /secret/,
    );
  });

  test('networks to fetch nothing from are named in CIDR notation', () => {
    for (const right of ['198.51.100.0/24', ' 10.0.0.1, 2001:db8::/32 ,', '64:ff9b:1::/48,0.0.0.0/0', '::/0']) {
      expect(readConfig({ OM_FETCH_DENY: right }).OM_FETCH_DENY).toBe(right.trim());
    }
    const many = Array.from({ length: 1001 }, () => '10.0.0.1').join();
    for (const wrong of ['example.org', '10.0.0.0/33', '::/129', '10.0.0.0/8/8', '10.0.0.0/', '10.0/16', '1;2', many]) {
      expect(problemsOf({ OM_FETCH_DENY: wrong })).toEqual([
        `OM_FETCH_DENY=${wrong}: expected at most 1000 networks such as 198.51.100.0/24 or 2001:db8:64::/96, ` +
          'comma-separated',
      ]);
    }
  });

  test('origins are split and trimmed', () => {
    expect(readConfig({}).corsOrigins).toEqual([]);
    expect(readConfig({ OM_CORS_ORIGINS: ' https://a.example , http://localhost:3000,' }).corsOrigins).toEqual([
      'https://a.example',
      'http://localhost:3000',
    ]);
  });
});

describe('settings that must agree', () => {
  test('the offline embedder takes multiples of 256 dimensions', () => {
    expect(readConfig({ OM_VEC_DIM: '256' }).OM_VEC_DIM).toBe(256);
    expect(problemsOf({ OM_VEC_DIM: '384' })).toEqual([expect.stringMatching(/^OM_VEC_DIM=384: .*256/)]);
  });

  test('an index of vectors takes multiples of 8; words only take any', () => {
    const openai = { OM_EMBEDDINGS: 'openai', OPENAI_API_KEY: 'key' };
    expect(readConfig({ ...openai, OM_VEC_DIM: '1000' }).OM_VEC_DIM).toBe(1000);
    expect(problemsOf({ ...openai, OM_VEC_DIM: '1001' })).toEqual([expect.stringMatching(/^OM_VEC_DIM=1001: .*8/)]);
    expect(readConfig({ OM_EMBEDDINGS: 'none', OM_VEC_DIM: '1001' }).OM_VEC_DIM).toBe(1001);
  });

  test('api.openai.com needs a key, a server of one’s own does not', () => {
    expect(problemsOf({ OM_EMBEDDINGS: 'openai' })).toEqual([expect.stringMatching(/^OPENAI_API_KEY is not set/)]);
    expect(readConfig({ OM_EMBEDDINGS: 'openai', OPENAI_API_KEY: 'key' }).OPENAI_API_KEY).toBe('key');
    const own = readConfig({ OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: 'http://localhost:11434/v1' });
    expect(own.OPENAI_API_KEY).toBeUndefined();
  });

  const AWS = { OM_EMBEDDINGS: 'bedrock', OM_VEC_DIM: '1024', AWS_REGION: 'eu-central-1' };
  const AWS_KEYS = { AWS_ACCESS_KEY_ID: 'secret-id', AWS_SECRET_ACCESS_KEY: 'secret' };
  test.each<[Record<string, string>, RegExp | null]>([
    [{ OM_EMBEDDINGS: 'gemini' }, /^GEMINI_API_KEY is not set/],
    [{ OM_EMBEDDINGS: 'gemini', GEMINI_API_KEY: 'key' }, null],
    [{ OM_EMBEDDINGS: 'ollama' }, null],
    [{ ...AWS }, /^AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set.*AWS_BEARER_TOKEN_BEDROCK/],
    [{ ...AWS, AWS_ACCESS_KEY_ID: 'id' }, /^AWS_ACCESS_KEY_ID and/],
    [{ ...AWS, ...AWS_KEYS }, null],
    [{ ...AWS, AWS_BEARER_TOKEN_BEDROCK: 'key' }, null],
    [{ ...AWS, ...AWS_KEYS, AWS_REGION: '' }, /^AWS_REGION is not set/],
    [{ ...AWS, ...AWS_KEYS, AWS_REGION: 'evil.example/' }, /^AWS_REGION: expected a region/],
    [{ OM_EMBEDDINGS: 'local' }, /^LOCAL_MODEL_PATH is not set/],
    [{ OM_EMBEDDINGS: 'local', LOCAL_MODEL_PATH: '/models/one' }, null],
  ])('a provider gets what it needs: %o', (environment, problem) => {
    expect(problemsOf(environment)).toEqual(problem === null ? [] : [expect.stringMatching(problem)]);
  });

  const MODEL = { OM_LLM_MODEL: 'a-model', OM_LLM_BASE_URL: 'http://localhost:11434/v1' };
  test.each<[Record<string, string>, RegExp | null]>([
    [{ OM_CONTRADICTIONS: 'llm' }, /^OM_CONTRADICTIONS=llm: .*OM_LLM_MODEL.*or choose off/],
    [{ OM_CONTRADICTIONS: 'llm', ...MODEL }, null],
    [{ OM_CONTRADICTIONS: 'llm', ...MODEL, OM_EMBEDDINGS: 'none' }, /^OM_CONTRADICTIONS=llm: .*OM_EMBEDDINGS=none/],
    [{ OM_REFLECTION: 'llm' }, /^OM_REFLECTION=llm: .*OM_LLM_MODEL.*or choose off/],
    [{ OM_REFLECTION: 'llm', ...MODEL, OM_EMBEDDINGS: 'none' }, null],
  ])('what needs a language model gets one: %o', (environment, problem) => {
    expect(problemsOf(environment)).toEqual(problem === null ? [] : [expect.stringMatching(problem)]);
  });

  const ISSUER = { OM_OIDC_ISSUER: 'https://login.example/realm', OM_OIDC_AUDIENCE: 'https://memory.example' };
  test.each<[Record<string, string>, RegExp | null]>([
    [ISSUER, null],
    [{ ...ISSUER, OM_OIDC_ISSUER: 'http://localhost:8180/realm' }, null],
    [{ ...ISSUER, OM_OIDC_ISSUER: 'http://[::1]:8180' }, null],
    [{ ...ISSUER, OM_OIDC_AUDIENCE: '' }, /^OM_OIDC_AUDIENCE is not set: .*other services/],
    [{ OM_OIDC_AUDIENCE: 'a' }, /^OM_OIDC_AUDIENCE: means nothing without OM_OIDC_ISSUER/],
    [{ OM_OIDC_JWKS_URL: 'https://login.example/keys' }, /^OM_OIDC_JWKS_URL: means nothing without OM_OIDC_ISSUER/],
    [{ OM_OIDC_TENANT_CLAIM: 'a' }, /^OM_OIDC_TENANT_CLAIM: means nothing without OM_OIDC_ISSUER/],
    [{ OM_OIDC_ROLE_CLAIM: 'a' }, /^OM_OIDC_ROLE_CLAIM: means nothing without OM_OIDC_ISSUER/],
    [{ OM_OIDC_USER_CLAIM: 'a' }, /^OM_OIDC_USER_CLAIM: means nothing without OM_OIDC_ISSUER/],
    [{ ...ISSUER, OM_OIDC_ROLE_CLAIM: 'r'.repeat(201) }, /^OM_OIDC_ROLE_CLAIM=r+: expected at most 200/],
    ...['http://login.example', 'ftp://login.example', 'login.example', 'https://name:secret@login.example'].flatMap(
      (url): [Record<string, string>, RegExp][] => [
        [{ ...ISSUER, OM_OIDC_ISSUER: url }, /^OM_OIDC_ISSUER=\(hidden\): expected https:\/\/host/],
        [{ ...ISSUER, OM_OIDC_JWKS_URL: url }, /^OM_OIDC_JWKS_URL=\(hidden\): expected https:\/\/host/],
      ],
    ),
  ])('tokens have an issuer that nobody can stand in for, and an audience: %o', (environment, problem) => {
    expect(problemsOf(environment)).toEqual(problem === null ? [] : [expect.stringMatching(problem)]);
  });

  test.each<[Record<string, string>, number, string]>([
    [{ OM_EMBEDDINGS: 'openai', OM_OPENAI_MODEL: 'text-embedding-3-small' }, 1536, 'at most 1536'],
    [{ OM_EMBEDDINGS: 'openai', OM_OPENAI_MODEL: 'text-embedding-3-large' }, 3072, 'at most 3072'],
    [{ OM_EMBEDDINGS: 'gemini', GEMINI_API_KEY: 'key' }, 3072, '128..3072'],
    [{ ...AWS, ...AWS_KEYS }, 1024, '256, 512 or 1024'],
  ])('dimensions are such as the model can make: %o', (environment, most, says) => {
    const settings = { OPENAI_API_KEY: 'key', ...environment };
    expect(readConfig({ ...settings, OM_VEC_DIM: String(most) }).OM_VEC_DIM).toBe(most);
    const [problem, ...others] = problemsOf({ ...settings, OM_VEC_DIM: String(most + 8) });
    expect(problem).toMatch(new RegExp(`^OM_VEC_DIM=${most + 8}: .*${says}`));
    expect(others).toEqual([]);
  });

  test.each(['OM_OPENAI_BASE_URL', 'OLLAMA_URL', 'OM_GEMINI_BASE_URL', 'OM_BEDROCK_BASE_URL', 'OM_LLM_BASE_URL'])(
    '%s is a URL without a password',
    (name) => {
      expect(problemsOf({ [name]: 'https://name:secret@example.org/' })).toEqual([
        `${name}=(hidden): expected no name or password`,
      ]);
      for (const wrong of ['localhost:11434', 'ftp://example.org', 'nowhere'])
        expect(problemsOf({ [name]: wrong })).toEqual([`${name}=(hidden): expected http://host or https://host`]);
      expect(problemsOf({ [name]: 'http://localhost:1/path@2' })).toEqual([]);
    },
  );

  test.each([
    'OPENAI_API_KEY',
    'GEMINI_API_KEY',
    'OM_LLM_API_KEY',
    'OM_EMBED_FALLBACK_KEY',
    'AWS_ACCESS_KEY_ID',
    'AWS_SESSION_TOKEN',
    'AWS_BEARER_TOKEN_BEDROCK',
  ])('%s holds what a header takes, and is not shown', (name) => {
    for (const wrong of ['canary\u20ac', 'canary\nkey', 'canary\u00e9'])
      expect(problemsOf({ [name]: wrong })).toEqual([
        `${name}=(hidden): expected printable ASCII, as a header takes nothing else`,
      ]);
  });

  test('a language model at api.openai.com needs a key, one of one’s own does not, and without a model nothing does', () => {
    expect(problemsOf({ OM_LLM_MODEL: 'a-model' })).toEqual([expect.stringMatching(/^OM_LLM_API_KEY is not set/)]);
    expect(readConfig({ OM_LLM_MODEL: 'a-model', OM_LLM_API_KEY: 'key' }).OM_LLM_MODEL).toBe('a-model');
    const own = readConfig({ OM_LLM_MODEL: 'a-model', OM_LLM_BASE_URL: 'http://localhost:11434/v1' });
    expect(own.OM_LLM_API_KEY).toBeUndefined();
    expect(readConfig({}).OM_LLM_MODEL).toBeUndefined();
  });
});

describe('servers that stand in', () => {
  const openai = { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: 'http://localhost:1/v1' };
  const URLS = 'https://one.example/v1, https://two.example/v1,https://three.example/v1';

  test('are taken in order, each with its own key or none', () => {
    const config = readConfig({
      ...openai,
      OM_EMBED_FALLBACK: URLS,
      OM_EMBED_FALLBACK_KEY: 'key-of-one,,key-of-three',
    });
    expect(config.fallbacks).toEqual([
      { baseUrl: 'https://one.example/v1', apiKey: 'key-of-one' },
      { baseUrl: 'https://two.example/v1', apiKey: undefined },
      { baseUrl: 'https://three.example/v1', apiKey: 'key-of-three' },
    ]);
    expect(readConfig(openai).fallbacks).toEqual([]);
  });

  test.each([
    'synthetic',
    'gemini',
    'https://one.example/v1,',
    'ftp://one.example',
    'https://me:secret@one.example/v1',
  ])('are addresses of the same model: %s is refused with the reason, and not quoted', (OM_EMBED_FALLBACK) => {
    const problems = problemsOf({ ...openai, OM_EMBED_FALLBACK });
    expect(problems).toEqual([expect.stringContaining('vectors of different models are never compared')]);
    expect(problems.join()).not.toContain(OM_EMBED_FALLBACK);
  });

  test('are only for a provider that has them', () => {
    expect(problemsOf({ OM_EMBED_FALLBACK: URLS })).toEqual([expect.stringContaining('not synthetic')]);
  });

  test('have no more keys than there are', () => {
    const settings = { ...openai, OM_EMBED_FALLBACK: 'https://one.example/v1', OM_EMBED_FALLBACK_KEY: 'a-key,b-key' };
    const problems = problemsOf(settings);
    expect(problems).toEqual([expect.stringContaining('more keys')]);
    expect(problems.join()).not.toContain('a-key');
  });
});

test('prices that cannot be read are refused', () => {
  expect(problemsOf({ OM_PRICES: 'a-model=cheap' })).toEqual([expect.stringContaining('OM_PRICES=a-model=cheap: ')]);
  expect(readConfig({ OM_PRICES: 'a-model=0.5' }).prices.get('a-model')).toEqual({ input: 0.5, output: 0 });
});

test('a standby to read from needs its primary, an address of PostgreSQL, and threads that read', () => {
  const [primary, standby] = ['postgres://cairn@db/cairn', 'postgres://cairn:secret@standby/cairn'];
  const name = 'OM_DATABASE_READ_URL';
  expect(problemsOf({ [name]: standby })).toEqual([expect.stringContaining('a standby of OM_DATABASE_URL')]);
  const wrong = problemsOf({ OM_DATABASE_URL: primary, [name]: 'mysql://cairn:secret@standby/cairn' });
  expect(wrong).toEqual([expect.stringMatching(/^OM_DATABASE_READ_URL.*expected postgres:/)]);
  expect(wrong.join()).not.toContain('secret');
  const alone = { OM_DATABASE_URL: primary, [name]: standby, OM_QUERY_THREADS: '0' };
  expect(problemsOf(alone)).toEqual([expect.stringContaining('OM_QUERY_THREADS=0')]);
  expect(readConfig({ ...alone, OM_QUERY_THREADS: '1' })[name]).toBe(standby);
  const bound = { OM_DATABASE_URL: primary, OM_DATABASE_READ_LAG_MS: '500' };
  expect(problemsOf(bound)).toEqual([expect.stringContaining('bounds what OM_DATABASE_READ_URL answers')]);
  expect(readConfig({ ...bound, [name]: standby }).OM_DATABASE_READ_LAG_MS).toBe(500);
});

describe('paths', () => {
  const folder = path.resolve('some', 'folder');

  test.each(['cairn.sqlite', 'cairn.sqlite3', 'cairn.db', 'cairn'])('all lie beside %s', (name) => {
    expect(readConfig({ OM_DB_PATH: path.join('some', 'folder', name) }).paths).toEqual({
      defaultTenant: path.join(folder, name),
      control: path.join(folder, 'cairn.control.sqlite'),
      tenants: path.join(folder, 'cairn.tenants'),
      lock: path.join(folder, 'cairn.lock'),
      budget: path.join(folder, 'cairn.budget.sqlite'),
      llmBudget: path.join(folder, 'cairn.llm-budget.sqlite'),
      rates: path.join(folder, 'cairn.rates.sqlite'),
      guesses: path.join(folder, 'cairn.guesses.sqlite'),
      address: path.join(folder, 'cairn.address'),
    });
  });

  test('two databases in one folder share no file', () => {
    const one = Object.values(readConfig({ OM_DB_PATH: path.join(folder, 'one.sqlite') }).paths);
    const two = Object.values(readConfig({ OM_DB_PATH: path.join(folder, 'two.sqlite') }).paths);
    expect(new Set([...one, ...two]).size).toBe(one.length + two.length);
  });
});

test.each([
  ['127.0.0.1', true],
  ['127.8.9.1', true],
  ['localhost', true],
  ['::1', true],
  ['[::1]', true],
  ['0.0.0.0', false],
  ['::', false],
  ['10.0.0.1', false],
  ['127.0.0.1.example.org', false],
  ['localhost.example.org', false],
])('%s is a loopback address: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});
