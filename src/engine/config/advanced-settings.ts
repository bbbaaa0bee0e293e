import { z } from 'zod';
import { ENTITY_MODES } from '../entities/modes.ts';
import { parsePolicy } from '../privacy/policy.ts';
import { BACKUP_SETTINGS } from './backup-settings.ts';
import { CONSOLIDATION_SETTINGS } from './consolidation-settings.ts';
import { EMBEDDING_SETTINGS } from './embedding-settings.ts';
import { EVAL_SETTINGS, EVENT_SETTINGS, RECEIPT_SETTINGS, WEBHOOK_SETTINGS } from './event-settings.ts';
import { FEDERATION_SETTINGS } from './federation-settings.ts';
import { LEARNING_SETTINGS } from './learning-settings.ts';
import { RECALL_SETTINGS } from './recall-settings.ts';
import { ENCRYPTION_SETTINGS } from './encryption-settings.ts';
import { LANGGRAPH_SETTINGS } from './langgraph-settings.ts';
import { LIMIT_SETTINGS } from './limit-settings.ts';
import { parseNetworks } from './networks.ts';
import {
  addressList,
  bounded,
  databaseUrl,
  flag,
  fraction,
  integer,
  providerKey,
  serviceUrl,
} from './setting-kinds.ts';
import { TOKEN_SETTINGS } from './token-settings.ts';

const SERVER_SETTINGS = {
  OM_PUBLIC_READS: flag(false).describe('Answer reads and queries of the default tenant without a key.'),
  OM_MAX_WRONG_KEYS: integer(20, 1, 1_000_000).describe(
    'Wrong keys of one address that are answered at once; then each further one makes it pause, for up to 60 s.',
  ),
  OM_TRUSTED_PROXIES: addressList().describe(
    'Addresses and networks of proxies whose X-Forwarded-For is believed, comma-separated, such as 10.0.0.0/8.',
  ),
  ...TOKEN_SETTINGS,
  OM_PUBLIC_URL: serviceUrl()
    .optional()
    .describe(
      'Address under which clients reach this server, such as https://memory.example.com; empty takes the Host header. ' +
        'The OAuth metadata of MCP names it.',
    ),
  OM_MCP_FORGET: flag(false).describe('Whether MCP offers the tool forget to clients whose key may write.'),
  OM_MCP_SEARCH_FETCH: flag(false).describe("Whether MCP offers search and fetch, as ChatGPT's connectors ask for."),
  OM_CORS_ORIGINS: z
    .string()
    .default('')
    .describe('Origins that a browser may call from, comma-separated, or * for any; they need a key.'),
  OM_ADD_WAIT_MS: integer(0, 0, 60_000).describe(
    'Longest time that an add waits for its memory to be finished before it answers (ms); 0 answers at once.',
  ),
  OM_READER_TIMEOUT_MS: integer(60_000, 100, 3_600_000).describe(
    'How long a client may read nothing of a reply before its connection is cut (ms).',
  ),
  OM_MAX_CONNECTIONS: integer(10_000, 2, 1_000_000).describe(
    'Most connections of HTTP clients, in all of OM_API_PROCESSES. One address (of IPv6 one /64) may have half of ' +
      'them.',
  ),
};

const PRIVACY_SETTINGS = {
  OM_PII: z
    .string()
    .default('off')
    .refine((text) => parsePolicy(text) !== undefined, 'expected a mode, or secrets=MODE,personal=MODE')
    .describe(
      'What becomes of secrets and personal data in a text before it is stored: off, mark, redact or refuse; or a ' +
        'mode for each group, as in secrets=redact,personal=mark. A tenant may have its own.',
    ),
  OM_PII_URL: serviceUrl()
    .optional()
    .describe('Base URL of an analyzer such as Presidio, which is asked for personal data in prose; empty for none.'),
  OM_PII_FAIL: z
    .enum(['refuse', 'store'])
    .default('refuse')
    .describe(
      'While the analyzer is down: refuse answers 503, and documents wait; store goes on with the built-in patterns.',
    ),
  OM_PII_TIMEOUT_MS: integer(2_000, 50, 60_000).describe('Time limit of one call of the analyzer (ms).'),
  OM_PII_LANGUAGE: z
    .string()
    .regex(/^[a-z]{2,3}$/, 'expected a language code such as en')
    .default('en')
    .describe('Language that the analyzer is told.'),
  OM_PII_MIN_SCORE: fraction(0.6).describe('Lowest score of what the analyzer finds that counts (0..1).'),
};

const LANGUAGE_MODEL_SETTINGS = {
  OM_LLM_MODEL: z
    .string()
    .optional()
    .describe('Language model for the features that can use one, such as rerank: llm; empty for none.'),
  OM_LLM_BASE_URL: serviceUrl()
    .default('https://api.openai.com/v1')
    .describe("Base URL of the language model's server, which speaks OpenAI's chat completions."),
  OM_LLM_API_KEY: providerKey().describe('Key sent to the language model.'),
  OM_LLM_TIMEOUT_MS: integer(30_000, 100, 600_000).describe(
    'Time limit of one call of the language model (ms). Time for which the process has no processor does not count.',
  ),
  OM_LLM_RPM: integer(0, 0, 1_000_000).describe(
    'Most calls of the language model in any minute, for all processes together; 0 for no limit.',
  ),
  OM_LLM_TPM: integer(0, 0, 1_000_000_000).describe(
    'Most tokens of the language model in any minute, for all processes together: the estimated prompt and the ' +
      'longest answer allowed; 0 for no limit.',
  ),
  OM_LLM_RERANK_TIMEOUT_MS: integer(2_000, 10, 60_000).describe(
    'How long a query waits for the language model to rerank before it keeps its own order (ms).',
  ),
};

const KNOWLEDGE_SETTINGS = {
  OM_ENTITY_MODE: z
    .enum(ENTITY_MODES)
    .default('general')
    .describe('Types of entities and relations in the graph of names: general, code or research; none for no graph.'),
  OM_ENTITY_MODE_FILE: z
    .string()
    .optional()
    .describe('A JSON file with types of your own in place of OM_ENTITY_MODE (docs/guides/entities.md).'),
  OM_ENTITY_EXTRACTION: z
    .enum(['patterns', 'llm'])
    .default('patterns')
    .describe('patterns needs no model; llm asks OM_LLM_MODEL about every memory and falls back to patterns.'),
  OM_CONTRADICTIONS: z
    .enum(['off', 'forms', 'llm'])
    .default('forms')
    .describe(
      'forms proposes contradictions with the nearest memories where short English statements say so by their form; ' +
        'llm asks OM_LLM_MODEL how each new memory relates to its nearest ones, and links those that contradict or ' +
        'support each other.',
    ),
  OM_REFLECTION: z
    .enum(['off', 'llm'])
    .default('off')
    .describe(
      'llm lets OM_LLM_MODEL reflect on the new memories of each user at intervals; with off it reflects only when ' +
        'POST /memory/reflect asks for it.',
    ),
  OM_REFLECTION_INTERVAL_MINUTES: integer(1440, 1, 525_600).describe(
    'With OM_REFLECTION=llm, how often Cairn looks for users with enough new memories (minutes).',
  ),
  OM_REFLECTION_MIN_MEMORIES: integer(20, 2, 10_000).describe(
    'With OM_REFLECTION=llm, how many new memories of a user are enough to reflect on.',
  ),
  ...CONSOLIDATION_SETTINGS,
};

const DOCUMENT_SETTINGS = {
  OM_CHUNK_TOKENS: integer(2048, 64, 8192).describe('Most tokens in a chunk of a document.'),
  OM_CHUNK_OVERLAP_TOKENS: integer(256, 0, 4096).describe('Tokens that a chunk repeats from the chunk before it.'),
  OM_UPLOAD_MAX_MB: integer(25, 1, 1024).describe('Largest document that is accepted (MB).'),
  OM_UPLOADS_MAX_MB: integer(2048, 1, 1_000_000).describe(
    "Most disk that a tenant's documents may take while they arrive or wait to be read (MB); further ones get 503.",
  ),
  OM_PARSERS: integer(2, 1, 32).describe(
    'Child processes of a worker that read documents at once; one more reads for a tenant that would wait for others.',
  ),
  OM_PARSE_TIMEOUT_MS: integer(30_000, 1000, 600_000).describe(
    'Time limit for reading one document (ms), below 1 MB down to a third; waiting for a processor does not count.',
  ),
  OM_PARSE_HEAP_MB: integer(512, 128, 8192).describe('Largest heap of a process that reads documents (MB).'),
  OM_URL_INGEST: flag(true).describe('Whether documents may be fetched from URLs; only public addresses are allowed.'),
  OM_FETCH_DENY: z
    .string()
    .default('')
    .refine(
      (text) => parseNetworks(text) !== undefined,
      'expected at most 1000 networks such as 198.51.100.0/24 or 2001:db8:64::/96, comma-separated',
    )
    .describe(
      'Networks that pages are not fetched from, comma-separated, such as 198.51.100.0/24 or 2001:db8:64::/96, ' +
        "beside those that are never fetched from: private ones and this machine's addresses.",
    ),
  OM_URL_TIMEOUT_MS: integer(15_000, 100, 300_000).describe('Time limit for fetching a page, redirects included (ms).'),
  OM_URL_MAX_MB: integer(5, 1, 100).describe('Largest page that is fetched, after decompression (MB).'),
};

const FORGETTING_SETTINGS = {
  OM_DECAY_LAMBDA: bounded(z.coerce.number(), 0, 10)
    .optional()
    .describe("Decay per day that replaces every sector's own rate; empty keeps those."),
  OM_DECAY_INTERVAL_MINUTES: integer(1440, 1, 525_600).describe('How often the decay job runs (minutes).'),
  OM_DECAY_REINFORCE_ON_QUERY: flag(true).describe(
    'Whether a query reinforces the memories it returns, unless it says otherwise.',
  ),
  OM_REINFORCE_PER_HOUR: fraction(0.5).describe(
    'Most that the salience of a memory rises within one hour by recall, reinforcement and repeated adds (0..1).',
  ),
  OM_ARCHIVE_BELOW: fraction(0).describe(
    'The decay job archives memories with a salience below this (0..1); 0 archives none.',
  ),
};

const OPERATION_SETTINGS = {
  OM_METRICS_HOST: z
    .string()
    .optional()
    .describe(
      'Address where GET /metrics is served without a key, at the ports of the next two settings; empty serves it ' +
        'only with a key, at OM_PORT.',
    ),
  OM_METRICS_KEY: z
    .string()
    .min(16, 'expected at least 16 characters')
    .optional()
    .describe('Key that reads GET /metrics and nothing else, for a Prometheus that should hold no admin key.'),
  OM_METRICS_PORT: integer(0, 0, 65_535).describe(
    "Port at OM_METRICS_HOST for the metrics of the API's process; 0 for none. With a key they are at OM_PORT too.",
  ),
  OM_WORKER_METRICS_PORT: integer(0, 0, 65_535).describe(
    'Port at OM_METRICS_HOST, else at OM_HOST, for the metrics of a worker process; 0 for none.',
  ),
  OM_TRACING: z
    .enum(['none', 'otlp'])
    .default('none')
    .describe(
      'otlp sends traces of requests and of the work they cause to the collector that OTEL_EXPORTER_OTLP_ENDPOINT ' +
        'names; it needs packages that are not installed by default (docs/operations/monitoring.md, Traces).',
    ),
  OM_AUDIT: z
    .enum(['off', 'writes', 'all'])
    .default('writes')
    .describe('What the audit log records: nothing, writes and changes of settings, or all of that and reads.'),
  OM_AUDIT_DAYS: integer(365, 1, 36_500).describe('How long records of the audit log are kept (days).'),
  OM_JOB_ATTEMPTS: integer(5, 1, 100).describe('How often a step of a job may fail before the job is a dead letter.'),
  OM_JOB_RETENTION_HOURS: integer(24, 1, 8760).describe('How long finished jobs and stored replies are kept (hours).'),
  OM_LEASE_MS: integer(15_000, 500, 600_000).describe(
    'Length of a lease: how long a worker may be silent before its jobs are taken back (ms).',
  ),
  OM_SHUTDOWN_MS: integer(10_000, 100, 300_000).describe('How long a shutdown waits for work in flight (ms).'),
  OM_API_PROCESSES: integer(1, 1, 64).describe(
    'Processes that answer HTTP requests at one address. More than one is of use where one core is not enough for ' +
      'requests and replies: questions have threads already. One process commits for all.',
  ),
  OM_DATABASE_READ_URL: databaseUrl()
    .optional()
    .describe(
      'A standby of OM_DATABASE_URL (streaming replication) from which queries, lists and exports are read; they may ' +
        'lack what other nodes wrote since.',
    ),
  OM_DATABASE_READ_LAG_MS: integer(1_000, 100, 3_600_000)
    .unwrap()
    .optional()
    .describe(
      'How old an answer of OM_DATABASE_READ_URL may be (ms): if it lacks a write that was acknowledged longer ago, ' +
        'the server of OM_DATABASE_URL answers. Empty sets no bound.',
    ),
  OM_QUERY_THREADS: integer(0, 0, 64)
    .unwrap()
    .optional()
    .describe(
      'Threads that answer queries in each process of the API; empty shares out the cores, at least 1 and at most 8 ' +
        'threads; 0 answers them on the thread that serves requests.',
    ),
  OM_QUERY_WORK_MB: integer(256, 1, 65_536).describe(
    'Work that one query or explanation may cause: MB of rows, tags and metadata that are looked at.',
  ),
  OM_QUERY_DEADLINE_MS: integer(10_000, 100, 50_000).describe(
    'Longest time that the work of one query or explanation may take (ms).',
  ),
  OM_OPEN_TENANTS: integer(64, 1, 10_000).describe('Most tenant files that each thread keeps open.'),
  OM_WORD_INDEX: z
    .enum(['auto', 'fts5-direct', 'fts5-match'])
    .default('auto')
    .describe(
      'How the word index is read: fts5-direct decodes what SQLite wrote; fts5-match asks SQLite, which is slower; ' +
        'auto takes fts5-direct wherever it knows the format.',
    ),
  OM_VECTOR_INDEX: z
    .enum(['auto', 'wasm', 'js', 'vec0'])
    .default('auto')
    .describe(
      'How vectors are searched: by their sign bits in WebAssembly (wasm) or JavaScript (js), or exactly by ' +
        'sqlite-vec (vec0), for small files; auto takes wasm if the machine can run it, else js.',
    ),
  OM_INDEX_MEMORY_MB: integer(512, 16, 1_000_000).describe(
    'Most memory for the vector indexes of all tenants (MB), shared by the threads that answer queries, and ' +
      'again in each thread that links memories. A million vectors of 768 dimensions take 130 MB.',
  ),
  OM_MAX_BACKLOG: integer(1_000_000, 1, 100_000_000).describe(
    'Most jobs of a tenant that wait for a worker; beyond it, adds get 503.',
  ),
};

/** The schema of each setting that few installations change, ordered by subject. */
export const ADVANCED_SETTINGS = {
  ...SERVER_SETTINGS,
  ...LANGGRAPH_SETTINGS,
  ...LIMIT_SETTINGS,
  ...PRIVACY_SETTINGS,
  ...EMBEDDING_SETTINGS,
  ...LANGUAGE_MODEL_SETTINGS,
  ...KNOWLEDGE_SETTINGS,
  ...DOCUMENT_SETTINGS,
  ...FORGETTING_SETTINGS,
  ...OPERATION_SETTINGS,
  ...ENCRYPTION_SETTINGS,
  ...BACKUP_SETTINGS,
  ...EVENT_SETTINGS,
  ...WEBHOOK_SETTINGS,
  ...FEDERATION_SETTINGS,
  ...RECEIPT_SETTINGS,
  ...RECALL_SETTINGS,
  ...EVAL_SETTINGS,
  ...LEARNING_SETTINGS,
};
