import fs from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { builtInMode, ENTITY_MODES, parseEntityMode, type EntityMode } from './entities/modes.ts';
import { EngineError } from './errors.ts';

/**
 * Every setting, its default, unit and bounds. Variables that are unset or empty take the default; `0` and `false` are
 * values. `.env.example` is tested against this table.
 */
const flag = (fallback: boolean) =>
  z
    .enum(['true', 'false', '1', '0'], { error: 'expected true or false' })
    .transform((text) => text === 'true' || text === '1')
    .default(fallback);
const integer = (fallback: number, min: number, max: number) =>
  z
    .string()
    .regex(/^-?\d{1,15}$/, `expected a whole number in decimal digits, ${min}..${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `expected ${min}..${max}`)
    .default(fallback);
const fraction = (fallback: number) => bounded(z.coerce.number(), 0, 1).default(fallback);
const bounded = (number: z.ZodCoercedNumber, min: number, max: number) =>
  number.refine((value) => value >= min && value <= max, `expected ${min}..${max}`);

export const settingsSchema = z.object({
  OM_HOST: z
    .string()
    .default('127.0.0.1')
    .describe('Address to listen on. Without a key only a loopback address is allowed.'),
  OM_PORT: integer(8080, 0, 65_535).describe('Port to listen on; 0 takes a free one.'),
  OM_DB_PATH: z
    .string()
    .default('./data/cairn.sqlite')
    .describe("The default tenant's file. The control database and further tenants live beside it."),
  OM_API_KEY: z
    .string()
    .min(8, 'expected at least 8 characters')
    .optional()
    .describe("The default tenant's admin key."),
  OM_PUBLIC_READS: flag(false).describe('Answer reads and queries of the default tenant without a key.'),
  OM_CORS_ORIGINS: z.string().default('').describe('Origins a browser may call from, comma-separated, or *.'),
  OM_LOG_LEVEL: z.enum(['silent', 'error', 'warn', 'info', 'debug']).default('info').describe('How much is logged.'),
  OM_ADD_WAIT_MS: integer(0, 0, 60_000).describe(
    'Answer an add with the finished memory, waiting at most so long (ms).',
  ),

  OM_EMBEDDINGS: z
    .enum(['synthetic', 'openai', 'none'])
    .default('synthetic')
    .describe('synthetic works offline; openai calls any OpenAI-compatible server; none searches by words only.'),
  OM_VEC_DIM: integer(768, 64, 4096).describe('Dimensions of a vector. The offline embedder takes multiples of 256.'),
  OM_OPENAI_MODEL: z.string().default('text-embedding-3-small').describe('Model name sent to the provider.'),
  OM_OPENAI_BASE_URL: z.url().default('https://api.openai.com/v1').describe('Base URL of the provider.'),
  OPENAI_API_KEY: z.string().optional().describe('Key sent to the provider.'),
  OM_EMBED_TIMEOUT_MS: integer(30_000, 100, 600_000).describe('Total time of one provider call (ms).'),
  OM_EMBED_DELAY_MS: integer(0, 0, 60_000).describe('Least gap between two provider calls (ms).'),
  OM_EMBED_BATCH_TEXTS: integer(64, 1, 2048).describe('Most texts in one provider call.'),
  OM_EMBED_BATCH_TOKENS: integer(60_000, 512, 300_000).describe('Most estimated tokens in one provider call.'),
  OM_EMBED_LINGER_MS: integer(10, 0, 1000).describe('How long a batch waits for company (ms).'),
  OM_EMBED_RPM: integer(0, 0, 1_000_000).describe(
    'Provider calls in any minute, of all processes together; 0 for no limit.',
  ),
  OM_EMBED_TPM: integer(0, 0, 1_000_000_000).describe('Estimated tokens in any minute, likewise; 0 for no limit.'),
  OM_EMBED_CONCURRENCY: integer(4, 1, 64).describe('Provider calls in flight.'),
  OM_QUERY_EMBED_TIMEOUT_MS: integer(800, 10, 60_000).describe(
    'How long a query waits for its vector before it answers from words (ms).',
  ),

  OM_LLM_MODEL: z
    .string()
    .optional()
    .describe('Language model for the parts that may use one, such as rerank: llm; empty for none.'),
  OM_LLM_BASE_URL: z
    .url()
    .default('https://api.openai.com/v1')
    .describe("Base URL of the language model's server, which speaks OpenAI's chat completions."),
  OM_LLM_API_KEY: z.string().optional().describe('Key sent to the language model.'),
  OM_LLM_TIMEOUT_MS: integer(30_000, 100, 600_000).describe('Total time of one call of the language model (ms).'),
  OM_LLM_RERANK_TIMEOUT_MS: integer(2_000, 10, 60_000).describe(
    'How long a query waits for the language model before it keeps the order it has (ms).',
  ),

  OM_ENTITY_MODE: z
    .enum(ENTITY_MODES)
    .default('general')
    .describe('Types of entities and relations in the graph of names: general, code or research; none for no graph.'),
  OM_ENTITY_MODE_FILE: z
    .string()
    .optional()
    .describe('A JSON file with types of your own in place of OM_ENTITY_MODE (docs/entities.md).'),
  OM_ENTITY_EXTRACTION: z
    .enum(['patterns', 'llm'])
    .default('patterns')
    .describe('patterns needs no model; llm asks OM_LLM_MODEL about every memory and falls back to patterns.'),

  OM_MIN_SCORE: fraction(0.3).describe(
    'Hits under this score are not returned, unless a query says otherwise. 0.3 is what one unrelated query of twenty reaches; 0 returns all.',
  ),
  OM_DECAY_LAMBDA: bounded(z.coerce.number(), 0, 10).optional().describe("Replaces every sector's own decay per day."),
  OM_DECAY_INTERVAL_MINUTES: integer(1440, 1, 525_600).describe('How often the decay job runs (minutes).'),
  OM_DECAY_REINFORCE_ON_QUERY: flag(true).describe(
    'Whether recall reinforces what it returned, unless a query says otherwise.',
  ),
  OM_ARCHIVE_BELOW: fraction(0).describe('The decay job archives memories whose salience fell under this; 0 never.'),

  REDIS_URL: z
    .url({ protocol: /^rediss?$/, error: 'expected redis://host:port or rediss://host:port' })
    .optional()
    .describe('Redis that carries jobs to worker processes (BullMQ). Without it the work is done in this process.'),
  OM_WORKER_METRICS_PORT: integer(0, 0, 65_535).describe(
    'Port at OM_HOST where a worker process serves its own GET /metrics; 0 for none.',
  ),
  OM_JOB_ATTEMPTS: integer(5, 1, 100).describe('Failures of a step before its job is a dead letter.'),
  OM_JOB_RETENTION_HOURS: integer(24, 1, 8760).describe('How long finished jobs and stored replies are kept (hours).'),
  OM_LEASE_MS: integer(15_000, 500, 600_000).describe(
    'How long a worker may be silent before its jobs are taken back (ms).',
  ),
  OM_SHUTDOWN_MS: integer(10_000, 100, 300_000).describe('How long a stop waits for work in flight (ms).'),
  OM_OPEN_TENANTS: integer(64, 1, 10_000).describe('Tenant files kept open at once.'),
  OM_MAX_BACKLOG: integer(1_000_000, 1, 100_000_000).describe('Unfinished jobs of a tenant beyond which adds get 503.'),
});

export type Settings = z.infer<typeof settingsSchema>;

/** Frozen, checked settings, plus what follows from them. */
export interface Config extends Readonly<Settings> {
  /** Absolute paths; all of them lie beside `OM_DB_PATH`. */
  readonly paths: {
    readonly defaultTenant: string;
    readonly control: string;
    readonly tenants: string;
    readonly lock: string;
    readonly budget: string;
  };
  readonly corsOrigins: readonly string[];
  /** null where no graph of names is built. */
  readonly entityMode: EntityMode | null;
}

/**
 * @param environment names and values as in `process.env`; other names are ignored
 * @throws EngineError `invalid`: one line a wrong setting, with its name, its value (never a key's) and what is allowed
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const present = Object.fromEntries(
    Object.keys(settingsSchema.shape)
      .map((name) => [name, environment[name]?.trim()] as const)
      .filter(([, value]) => value !== undefined && value !== ''),
  );
  const parsed = settingsSchema.safeParse(present);
  const entityMode = parsed.success ? readEntityMode(parsed.data) : null;
  const problems = parsed.success
    ? [...crossChecks(parsed.data), ...(typeof entityMode === 'string' ? [entityMode] : [])]
    : parsed.error.issues.map((issue) => describeProblem(String(issue.path[0]), present, issue.message));
  if (!parsed.success || typeof entityMode === 'string' || problems.length > 0) {
    throw new EngineError('invalid', `wrong settings:\n  ${problems.join('\n  ')}`, { details: problems });
  }
  const settings = parsed.data;
  const database = path.resolve(settings.OM_DB_PATH);
  const base = database.replace(/\.(sqlite3?|db)$/, '');
  return Object.freeze({
    ...settings,
    paths: Object.freeze({
      defaultTenant: database,
      control: `${base}.control.sqlite`,
      tenants: `${base}.tenants`,
      lock: `${base}.lock`,
      budget: `${base}.budget.sqlite`,
    }),
    corsOrigins: settings.OM_CORS_ORIGINS.split(',')
      .map((origin) => origin.trim())
      .filter(Boolean),
    entityMode,
  });
}

const ENTITY_MODE_BYTES_MOST = 1024 * 1024;

/** @returns the problem, if there is one */
function readEntityMode(settings: Settings): EntityMode | null | string {
  const file = settings.OM_ENTITY_MODE_FILE;
  if (file === undefined) return builtInMode(settings.OM_ENTITY_MODE);
  try {
    if (fs.statSync(file).size > ENTITY_MODE_BYTES_MOST) throw new Error(`more than ${ENTITY_MODE_BYTES_MOST} bytes`);
    return parseEntityMode(fs.readFileSync(file, 'utf8'));
  } catch (error) {
    return `OM_ENTITY_MODE_FILE=${file}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function crossChecks(settings: Settings): string[] {
  const problems: string[] = [];
  if (settings.OM_EMBEDDINGS === 'synthetic' && settings.OM_VEC_DIM % 256 !== 0) {
    problems.push(
      `OM_VEC_DIM=${settings.OM_VEC_DIM}: the offline embedder takes multiples of 256 (768 is the default)`,
    );
  }
  if (settings.OM_EMBEDDINGS !== 'none' && settings.OM_VEC_DIM % 8 !== 0) {
    problems.push(`OM_VEC_DIM=${settings.OM_VEC_DIM}: expected a multiple of 8, as the index keeps a bit a dimension`);
  }
  if (
    settings.OM_EMBEDDINGS === 'openai' &&
    settings.OPENAI_API_KEY === undefined &&
    new URL(settings.OM_OPENAI_BASE_URL).hostname === 'api.openai.com'
  ) {
    problems.push('OPENAI_API_KEY is not set: api.openai.com needs one; for a local server set OM_OPENAI_BASE_URL');
  }
  if (
    settings.OM_LLM_MODEL !== undefined &&
    settings.OM_LLM_API_KEY === undefined &&
    new URL(settings.OM_LLM_BASE_URL).hostname === 'api.openai.com'
  ) {
    problems.push('OM_LLM_API_KEY is not set: api.openai.com needs one; for a local server set OM_LLM_BASE_URL');
  }
  if (settings.OM_ENTITY_EXTRACTION === 'llm' && settings.OM_LLM_MODEL === undefined) {
    problems.push('OM_ENTITY_EXTRACTION=llm: needs a language model, so set OM_LLM_MODEL too, or choose patterns');
  }
  if (settings.OM_ENTITY_MODE === 'none' && settings.OM_ENTITY_MODE_FILE !== undefined) {
    problems.push('OM_ENTITY_MODE=none builds no graph, which OM_ENTITY_MODE_FILE asks for: leave one of them out');
  }
  return problems;
}

function describeProblem(name: string, present: Record<string, string | undefined>, message: string): string {
  // A URL may hold credentials.
  const secret = name.endsWith('_KEY') || name.endsWith('_URL');
  return `${name}=${secret ? '(hidden)' : (present[name] ?? '')}: ${message}`;
}

/** True for an address that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}
