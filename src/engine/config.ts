import path from 'node:path';
import { z } from 'zod';
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
  OM_EMBED_CONCURRENCY: integer(4, 1, 64).describe('Provider calls in flight.'),
  OM_QUERY_EMBED_TIMEOUT_MS: integer(800, 10, 60_000).describe(
    'How long a query waits for its vector before it answers from words (ms).',
  ),

  OM_MIN_SCORE: fraction(0).describe('Hits under this score are not returned, unless a query says otherwise.'),
  OM_DECAY_LAMBDA: bounded(z.coerce.number(), 0, 10).optional().describe("Replaces every sector's own decay per day."),
  OM_DECAY_INTERVAL_MINUTES: integer(1440, 1, 525_600).describe('How often the decay job runs (minutes).'),
  OM_DECAY_REINFORCE_ON_QUERY: flag(true).describe(
    'Whether recall reinforces what it returned, unless a query says otherwise.',
  ),
  OM_ARCHIVE_BELOW: fraction(0).describe('The decay job archives memories whose salience fell under this; 0 never.'),

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
  };
  readonly corsOrigins: readonly string[];
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
  const problems = parsed.success
    ? crossChecks(parsed.data)
    : parsed.error.issues.map((issue) => describeProblem(String(issue.path[0]), present, issue.message));
  if (!parsed.success || problems.length > 0) {
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
    }),
    corsOrigins: settings.OM_CORS_ORIGINS.split(',')
      .map((origin) => origin.trim())
      .filter(Boolean),
  });
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
