import fs from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { builtInMode, ENTITY_MODES, parseEntityMode, type EntityMode } from './entities/modes.ts';
import { EngineError } from './errors.ts';
import { parsePrices, type Prices } from './prices.ts';
import { SECTORS, type Sector } from './types.ts';

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
/** Without credentials, which would end up in places where URLs are shown, and which `fetch` refuses. */
const serviceUrl = () =>
  z
    .url({ protocol: /^https?$/, error: 'expected http://host or https://host' })
    .refine((url) => !/^\w+:\/\/[^/?#]*@/.test(url), 'expected no name or password');
/** Of another server, which gets it in a header. */
const providerKey = () =>
  z
    .string()
    .regex(/^[\x20-\x7e]*$/, 'expected printable ASCII, as a header takes nothing else')
    .optional();
const bounded = (number: z.ZodCoercedNumber, min: number, max: number) =>
  number.refine((value) => value >= min && value <= max, `expected ${min}..${max}`);
const modelOfSector = (sector: Sector) =>
  z
    .string()
    .regex(/^[^@]+(@\d{1,5})?$/, 'expected a model, or model@dimensions')
    .optional()
    .describe(
      `With OM_EMBED_MODE=advanced, the provider's model for ${sector} memories: model, or model@dimensions where these are not OM_VEC_DIM; empty for the provider's own.`,
    );

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
    .enum(['synthetic', 'openai', 'gemini', 'ollama', 'bedrock', 'local', 'none'])
    .default('synthetic')
    .describe(
      'synthetic works offline; openai calls any OpenAI-compatible server; gemini, ollama, bedrock (Titan v2) and local (ONNX) as named; none searches by words only.',
    ),
  OM_VEC_DIM: integer(768, 64, 4096).describe('Dimensions of a vector. The offline embedder takes multiples of 256.'),
  OM_OPENAI_MODEL: z.string().default('text-embedding-3-small').describe('Model name sent to the provider.'),
  OM_OPENAI_BASE_URL: serviceUrl().default('https://api.openai.com/v1').describe('Base URL of the provider.'),
  OPENAI_API_KEY: providerKey().describe('Key sent to the provider.'),
  OM_GEMINI_MODEL: z.string().default('gemini-embedding-001').describe('Model of OM_EMBEDDINGS=gemini.'),
  OM_GEMINI_BASE_URL: serviceUrl()
    .default('https://generativelanguage.googleapis.com/v1beta')
    .describe('Base URL of the Gemini API.'),
  GEMINI_API_KEY: providerKey().describe('Key sent to Gemini.'),
  OM_OLLAMA_MODEL: z.string().default('nomic-embed-text').describe('Model of OM_EMBEDDINGS=ollama.'),
  OLLAMA_URL: serviceUrl().default('http://localhost:11434').describe('Where Ollama listens.'),
  OM_BEDROCK_MODEL: z
    .string()
    .default('amazon.titan-embed-text-v2:0')
    .describe('Model of OM_EMBEDDINGS=bedrock, by id or ARN: a Titan Text Embeddings V2.'),
  OM_BEDROCK_BASE_URL: serviceUrl()
    .optional()
    .describe("Base URL of the Bedrock runtime where it is not the region's own, as with a VPC endpoint."),
  AWS_REGION: z.string().optional().describe('Region of Bedrock.'),
  AWS_ACCESS_KEY_ID: providerKey().describe('Access key that signs calls of Bedrock.'),
  AWS_SECRET_ACCESS_KEY: z.string().optional().describe('Its secret.'),
  AWS_SESSION_TOKEN: providerKey().describe('Its session token, if it is a temporary one.'),
  AWS_BEARER_TOKEN_BEDROCK: providerKey().describe('Bedrock API key, in place of an access key and its secret.'),
  LOCAL_MODEL_PATH: z
    .string()
    .optional()
    .describe(
      'Folder of the model of OM_EMBEDDINGS=local: model.onnx and tokenizer.json, as Hugging Face exports them.',
    ),
  OM_LOCAL_POOLING: z
    .enum(['mean', 'cls'])
    .default('mean')
    .describe("How the local model's token vectors become one: their mean, or the first; its card says which."),
  OM_EMBED_MODE: z
    .enum(['simple', 'advanced'])
    .default('simple')
    .describe(
      'simple embeds a text once for all its sectors; advanced by a model a sector (openai, gemini, ollama, bedrock).',
    ),
  OM_ADV_EMBED_PARALLEL: flag(false).describe(
    'Whether advanced asks the models of a memory, or of a query, all at once; else one after the other.',
  ),
  OM_EMBED_MODEL_EPISODIC: modelOfSector('episodic'),
  OM_EMBED_MODEL_SEMANTIC: modelOfSector('semantic'),
  OM_EMBED_MODEL_PROCEDURAL: modelOfSector('procedural'),
  OM_EMBED_MODEL_EMOTIONAL: modelOfSector('emotional'),
  OM_EMBED_MODEL_REFLECTIVE: modelOfSector('reflective'),
  OM_EMBED_TIMEOUT_MS: integer(30_000, 100, 600_000).describe('Total time of one provider call (ms).'),
  OM_EMBED_DELAY_MS: integer(0, 0, 60_000).describe(
    'Least gap between the starts of two provider calls, of all processes together (ms).',
  ),
  OM_EMBED_BATCH_TEXTS: integer(64, 1, 2048).describe('Most texts in one provider call.'),
  OM_EMBED_BATCH_TOKENS: integer(60_000, 512, 300_000).describe('Most estimated tokens in one provider call.'),
  OM_EMBED_LINGER_MS: integer(10, 0, 1000).describe('How long a batch waits for company (ms).'),
  OM_EMBED_RPM: integer(0, 0, 1_000_000).describe(
    'Provider calls in any minute, of all processes together; 0 for no limit.',
  ),
  OM_EMBED_TPM: integer(0, 0, 1_000_000_000).describe('Estimated tokens in any minute, likewise; 0 for no limit.'),
  OM_EMBED_CONCURRENCY: integer(4, 1, 64).describe('Provider calls in flight.'),
  OM_EMBED_FALLBACK: z
    .string()
    .default('')
    .describe(
      'Base URLs that stand in for OM_OPENAI_BASE_URL while it fails, in order, comma-separated; they must serve the same model.',
    ),
  OM_EMBED_FALLBACK_KEY: providerKey().describe(
    'Keys sent to them in the same order, comma-separated; none is sent where it is empty.',
  ),
  OM_EMBED_CACHE_DAYS: integer(30, 0, 36_500).describe(
    'How long a vector that was paid for is kept for the same text after it was last needed (days).',
  ),
  OM_PRICES: z
    .string()
    .default('')
    .refine((text) => parsePrices(text) !== undefined, 'expected model=USD or model=USD/USD, comma-separated')
    .describe(
      'USD per million tokens, comma-separated: text-embedding-3-small=0.02, or gpt-4o-mini=0.15/0.60 for tokens read and written. Over the known list prices; other models cost nothing.',
    ),
  OM_QUERY_EMBED_TIMEOUT_MS: integer(800, 10, 60_000).describe(
    'How long a query waits for its vector before it answers from words (ms).',
  ),
  OM_REEMBED: z
    .enum(['auto', 'manual'])
    .optional()
    .describe(
      'After a change of the model, auto embeds all memories anew by itself, manual waits for cairn reembed; if unset, auto where that costs nothing (synthetic, local).',
    ),

  OM_LLM_MODEL: z
    .string()
    .optional()
    .describe('Language model for the parts that may use one, such as rerank: llm; empty for none.'),
  OM_LLM_BASE_URL: serviceUrl()
    .default('https://api.openai.com/v1')
    .describe("Base URL of the language model's server, which speaks OpenAI's chat completions."),
  OM_LLM_API_KEY: providerKey().describe('Key sent to the language model.'),
  OM_LLM_TIMEOUT_MS: integer(30_000, 100, 600_000).describe('Total time of one call of the language model (ms).'),
  OM_LLM_RPM: integer(0, 0, 1_000_000).describe(
    'Calls of the language model in any minute, of all processes together; 0 for no limit.',
  ),
  OM_LLM_TPM: integer(0, 0, 1_000_000_000).describe(
    'Its tokens in any minute, likewise, by estimate and with the longest answer that is allowed; 0 for no limit.',
  ),
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
  OM_CONTRADICTIONS: z
    .enum(['off', 'llm'])
    .default('off')
    .describe(
      'llm asks OM_LLM_MODEL how each new memory relates to its nearest ones, and links those that contradict or support each other.',
    ),
  OM_REFLECTION: z
    .enum(['off', 'llm'])
    .default('off')
    .describe(
      'llm lets OM_LLM_MODEL reflect on the new memories of each user by itself; with off only where POST /memory/reflect asks for it.',
    ),
  OM_REFLECTION_INTERVAL_MINUTES: integer(1440, 1, 525_600).describe(
    'With OM_REFLECTION=llm, how often users are looked for who have enough that is new (minutes).',
  ),
  OM_REFLECTION_MIN_MEMORIES: integer(20, 2, 10_000).describe(
    'With OM_REFLECTION=llm, new memories of a user that are enough.',
  ),

  OM_CHUNK_TOKENS: integer(2048, 64, 8192).describe('Most tokens in a chunk of a document.'),
  OM_CHUNK_OVERLAP_TOKENS: integer(256, 0, 4096).describe('Tokens that a chunk repeats of the one before.'),
  OM_UPLOAD_MAX_MB: integer(25, 1, 1024).describe('Most of a document that is handed in (MB).'),
  OM_UPLOADS_MAX_MB: integer(2048, 1, 1_000_000).describe(
    'Documents of a tenant that arrive or wait to be read may take so much disk (MB); beyond it more get 503.',
  ),
  OM_PARSERS: integer(2, 1, 32).describe('Child processes of a worker that read documents.'),
  OM_PARSE_TIMEOUT_MS: integer(30_000, 1000, 600_000).describe(
    'Time to read one document (ms); waiting for a processor does not count.',
  ),
  OM_PARSE_HEAP_MB: integer(512, 128, 8192).describe('Heap of a process that reads documents (MB).'),
  OM_URL_INGEST: flag(true).describe('Whether documents are fetched from URLs; only public addresses ever are.'),
  OM_URL_TIMEOUT_MS: integer(15_000, 100, 300_000).describe('Total time to fetch a page, redirects included (ms).'),
  OM_URL_MAX_MB: integer(5, 1, 100).describe('Most of a page, after decompression (MB).'),

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
  OM_METRICS_HOST: z
    .string()
    .optional()
    .describe(
      'Address where GET /metrics is served without a key, on the two ports that follow; empty leaves it to holders of a key.',
    ),
  OM_METRICS_PORT: integer(0, 0, 65_535).describe(
    "Port at OM_METRICS_HOST for the metrics of the API's process; 0 for none. They are at OM_PORT too, for holders of a key.",
  ),
  OM_WORKER_METRICS_PORT: integer(0, 0, 65_535).describe(
    'Port at OM_METRICS_HOST, else at OM_HOST, for the metrics of a worker process; 0 for none.',
  ),
  OM_TRACING: z
    .enum(['none', 'otlp'])
    .default('none')
    .describe(
      'otlp sends traces of requests and of the work that they ask for to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names; needs packages that are not installed by default (docs/operations.md).',
    ),
  OM_JOB_ATTEMPTS: integer(5, 1, 100).describe('Failures of a step before its job is a dead letter.'),
  OM_JOB_RETENTION_HOURS: integer(24, 1, 8760).describe('How long finished jobs and stored replies are kept (hours).'),
  OM_LEASE_MS: integer(15_000, 500, 600_000).describe(
    'How long a worker may be silent before its jobs are taken back (ms).',
  ),
  OM_SHUTDOWN_MS: integer(10_000, 100, 300_000).describe('How long a stop waits for work in flight (ms).'),
  OM_OPEN_TENANTS: integer(64, 1, 10_000).describe('Tenant files kept open at once.'),
  OM_WORD_INDEX: z
    .enum(['auto', 'fts5-direct', 'fts5-match'])
    .default('auto')
    .describe(
      'How the index of words is read: fts5-direct decodes what SQLite wrote, fts5-match asks SQLite, which is slower; auto takes the former wherever it knows the format.',
    ),
  OM_VECTOR_INDEX: z
    .enum(['auto', 'wasm', 'js', 'vec0'])
    .default('auto')
    .describe(
      'How vectors are searched: by their sign bits in WebAssembly (wasm) or JavaScript (js), or exactly by sqlite-vec (vec0), for small files; auto takes wasm where the machine runs it, else js.',
    ),
  OM_INDEX_MEMORY_MB: integer(512, 16, 1_000_000).describe(
    'What the vector indexes of all tenants may take in memory, in the thread that answers and in each that links (MB); a million vectors of 768 dimensions take 130.',
  ),
  OM_MAX_BACKLOG: integer(1_000_000, 1, 100_000_000).describe('Unfinished jobs of a tenant beyond which adds get 503.'),
});

export type Settings = z.infer<typeof settingsSchema>;

/** The setting that names each provider's model. A local one is its folder, so that only one can be named. */
export const MODEL_SETTINGS = {
  openai: 'OM_OPENAI_MODEL',
  gemini: 'OM_GEMINI_MODEL',
  ollama: 'OM_OLLAMA_MODEL',
  bedrock: 'OM_BEDROCK_MODEL',
} as const;

export interface NamedModel {
  readonly model: string;
  readonly dimensions: number;
}

/** The settings as they would be if the provider had this model. */
export function withModel<S extends Settings>(settings: S, { model, dimensions }: NamedModel): S {
  const setting = MODEL_SETTINGS[settings.OM_EMBEDDINGS as keyof typeof MODEL_SETTINGS] as string | undefined;
  return { ...settings, OM_VEC_DIM: dimensions, ...(setting === undefined ? {} : { [setting]: model }) };
}

/** Frozen, checked settings, plus what follows from them. */
export interface Config extends Readonly<Settings> {
  /** Absolute paths; all of them lie beside `OM_DB_PATH`. */
  readonly paths: {
    readonly defaultTenant: string;
    readonly control: string;
    readonly tenants: string;
    readonly lock: string;
    readonly budget: string;
    readonly llmBudget: string;
  };
  /** True if vectors are computed on this machine or not at all, so that encoding takes its cores and waits for no provider. */
  readonly embedsHere: boolean;
  /** What a million tokens of a model cost. */
  readonly prices: Prices;
  /** The model of each sector in the order of SECTORS; null in the simple mode, where the provider's model embeds all. */
  readonly sectorModels: readonly NamedModel[] | null;
  /** Servers of the same model that stand in for the configured one, in order. */
  readonly fallbacks: readonly Fallback[];
  readonly corsOrigins: readonly string[];
  /** null where no graph of names is built. */
  readonly entityMode: EntityMode | null;
}

export interface Fallback {
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
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
      llmBudget: `${base}.llm-budget.sqlite`,
    }),
    embedsHere: EMBEDDED_HERE.has(settings.OM_EMBEDDINGS),
    prices: parsePrices(settings.OM_PRICES)!,
    sectorModels: sectorModelsOf(settings),
    fallbacks: fallbacksOf(settings),
    corsOrigins: settings.OM_CORS_ORIGINS.split(',')
      .map((origin) => origin.trim())
      .filter(Boolean),
    entityMode,
  });
}

/** Values of `OM_EMBEDDINGS` with which no provider is asked for vectors. */
const EMBEDDED_HERE: ReadonlySet<Settings['OM_EMBEDDINGS']> = new Set(['synthetic', 'local', 'none']);

const sectorSetting = (sector: Sector) => `OM_EMBED_MODEL_${sector.toUpperCase() as Uppercase<Sector>}` as const;

function sectorModelsOf(settings: Settings): NamedModel[] | null {
  const { OM_EMBED_MODE, OM_EMBEDDINGS, OM_VEC_DIM } = settings;
  if (OM_EMBED_MODE === 'simple' || !hasModels(OM_EMBEDDINGS)) return null;
  return SECTORS.map((sector) => {
    const [model = settings[MODEL_SETTINGS[OM_EMBEDDINGS]], dimensions] =
      settings[sectorSetting(sector)]?.split('@') ?? [];
    return { model, dimensions: Number(dimensions ?? OM_VEC_DIM) };
  });
}

function hasModels(provider: string): provider is keyof typeof MODEL_SETTINGS {
  return provider in MODEL_SETTINGS;
}

const commaSeparated = (text: string) => text.split(',').map((part) => part.trim());

function fallbacksOf({ OM_EMBED_FALLBACK, OM_EMBED_FALLBACK_KEY = '' }: Settings): Fallback[] {
  const keys = commaSeparated(OM_EMBED_FALLBACK_KEY);
  const urls = OM_EMBED_FALLBACK === '' ? [] : commaSeparated(OM_EMBED_FALLBACK);
  return urls.map((baseUrl, place) => ({ baseUrl, apiKey: keys[place] || undefined }));
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
  if (settings.OM_CHUNK_OVERLAP_TOKENS * 2 > settings.OM_CHUNK_TOKENS) {
    problems.push(
      `OM_CHUNK_OVERLAP_TOKENS=${settings.OM_CHUNK_OVERLAP_TOKENS}: expected at most half of OM_CHUNK_TOKENS, ${settings.OM_CHUNK_TOKENS}`,
    );
  }
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
  problems.push(...checkEmbeddings(settings), ...checkSectorModels(settings), ...checkFallbacks(settings));
  if (
    settings.OM_LLM_MODEL !== undefined &&
    settings.OM_LLM_API_KEY === undefined &&
    new URL(settings.OM_LLM_BASE_URL).hostname === 'api.openai.com'
  ) {
    problems.push('OM_LLM_API_KEY is not set: api.openai.com needs one; for a local server set OM_LLM_BASE_URL');
  }
  if (settings.OM_METRICS_PORT !== 0 && settings.OM_METRICS_HOST === undefined) {
    problems.push(
      `OM_METRICS_PORT=${settings.OM_METRICS_PORT}: needs OM_METRICS_HOST, the address where no key is asked for, such as 127.0.0.1`,
    );
  }
  if (settings.OM_ENTITY_EXTRACTION === 'llm' && settings.OM_LLM_MODEL === undefined) {
    problems.push('OM_ENTITY_EXTRACTION=llm: needs a language model, so set OM_LLM_MODEL too, or choose patterns');
  }
  for (const name of ['OM_CONTRADICTIONS', 'OM_REFLECTION'] as const) {
    if (settings[name] === 'llm' && settings.OM_LLM_MODEL === undefined) {
      problems.push(`${name}=llm: needs a language model, so set OM_LLM_MODEL too, or choose off`);
    }
  }
  if (settings.OM_CONTRADICTIONS === 'llm' && settings.OM_EMBEDDINGS === 'none') {
    problems.push(
      'OM_CONTRADICTIONS=llm: compares what is near by its vectors, so OM_EMBEDDINGS=none has nothing to compare',
    );
  }
  if (settings.OM_ENTITY_MODE === 'none' && settings.OM_ENTITY_MODE_FILE !== undefined) {
    problems.push('OM_ENTITY_MODE=none builds no graph, which OM_ENTITY_MODE_FILE asks for: leave one of them out');
  }
  return problems;
}

/** What the chosen provider needs and the sizes of vectors that its models can make. */
function checkEmbeddings(settings: Settings): string[] {
  const { OM_VEC_DIM: dimensions } = settings;
  const wrongDimensions = (expected: string) => `OM_VEC_DIM=${dimensions}: ${expected}`;
  switch (settings.OM_EMBEDDINGS) {
    case 'openai': {
      const most = settings.OM_OPENAI_MODEL.endsWith('text-embedding-3-small') ? 1536 : 3072;
      const isSized = settings.OM_OPENAI_MODEL.includes('text-embedding-3') && dimensions > most;
      return isSized ? [wrongDimensions(`${settings.OM_OPENAI_MODEL} makes at most ${most}`)] : [];
    }
    case 'gemini':
      return [
        ...(settings.GEMINI_API_KEY === undefined ? ['GEMINI_API_KEY is not set: OM_EMBEDDINGS=gemini needs one'] : []),
        ...(dimensions < 128 || dimensions > 3072 ? [wrongDimensions('Gemini makes 128..3072')] : []),
      ];
    case 'bedrock':
      return [
        ...checkAws(settings),
        ...([256, 512, 1024].includes(dimensions) ? [] : [wrongDimensions('Titan v2 makes 256, 512 or 1024')]),
      ];
    case 'local':
      return settings.LOCAL_MODEL_PATH === undefined
        ? ['LOCAL_MODEL_PATH is not set: OM_EMBEDDINGS=local needs the folder of a model']
        : [];
    case 'synthetic':
    case 'ollama':
    case 'none':
      return [];
  }
}

/** Each has to be one that the provider's own model could be. */
function checkSectorModels(settings: Settings): string[] {
  const { OM_EMBED_MODE: mode, OM_EMBEDDINGS: provider } = settings;
  const named = SECTORS.map(sectorSetting).filter((name) => settings[name] !== undefined);
  if (mode === 'simple') {
    return named.map((name) => `${name}=${settings[name]}: only OM_EMBED_MODE=advanced has a model a sector`);
  }
  if (!hasModels(provider)) {
    return [
      `OM_EMBED_MODE=advanced: OM_EMBEDDINGS has to be openai, gemini, ollama or bedrock, as ${provider} has no several models to choose from; or take OM_EMBED_MODE=simple`,
    ];
  }
  return sectorModelsOf(settings)!.flatMap(({ model, dimensions }, place) => {
    const name = sectorSetting(SECTORS[place]!);
    if (settings[name] === undefined) return [];
    const wrong = (expected: string) => [`${name}=${settings[name]}: ${expected}`];
    if (dimensions < 64 || dimensions > 4096 || dimensions % 8 !== 0) {
      return wrong('expected dimensions of 64..4096, a multiple of 8');
    }
    const known = new Set(checkEmbeddings(settings));
    return checkEmbeddings(withModel(settings, { model, dimensions }))
      .filter((problem) => !known.has(problem))
      .flatMap(wrong);
  });
}

/** A fallback is another door to the same vector space, never another space. */
function checkFallbacks(settings: Settings): string[] {
  const fallbacks = fallbacksOf(settings);
  const keys = settings.OM_EMBED_FALLBACK_KEY === undefined ? [] : commaSeparated(settings.OM_EMBED_FALLBACK_KEY);
  if (keys.length > fallbacks.length)
    return ['OM_EMBED_FALLBACK_KEY: holds more keys than OM_EMBED_FALLBACK has servers'];
  if (fallbacks.length === 0) return [];
  if (settings.OM_EMBEDDINGS !== 'openai') {
    return [
      `OM_EMBED_FALLBACK: only OM_EMBEDDINGS=openai has servers that can stand in, not ${settings.OM_EMBEDDINGS}`,
    ];
  }
  const isWrong = ({ baseUrl }: Fallback) => !serviceUrl().safeParse(baseUrl).success;
  return fallbacks.some(isWrong)
    ? [
        'OM_EMBED_FALLBACK: expected base URLs, without name or password, that serve the same model: vectors of different models are never compared, so no other provider can stand in',
      ]
    : [];
}

function checkAws(settings: Settings): string[] {
  const { AWS_REGION: region, AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = settings;
  const problems: string[] = [];
  if (region === undefined) problems.push('AWS_REGION is not set: OM_EMBEDDINGS=bedrock needs it');
  // It becomes part of a host name.
  else if (!/^[a-z0-9-]+$/.test(region)) problems.push('AWS_REGION: expected a region such as eu-central-1');
  if (settings.AWS_BEARER_TOKEN_BEDROCK === undefined && (id === undefined || secret === undefined)) {
    problems.push(
      'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set: OM_EMBEDDINGS=bedrock needs them, or AWS_BEARER_TOKEN_BEDROCK',
    );
  }
  return problems;
}

function describeProblem(name: string, present: Record<string, string | undefined>, message: string): string {
  // A URL may hold credentials.
  const secret = /_(KEY|TOKEN)(_|$)|_URL$/.test(name) || name === 'OM_EMBED_FALLBACK';
  return `${name}=${secret ? '(hidden)' : (present[name] ?? '')}: ${message}`;
}

/** True for an address that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}
