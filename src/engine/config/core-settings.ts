import { z } from 'zod';
import { DATABASES_FORM, parseDatabases } from './databases.ts';
import { isWeakKey } from './weak-key.ts';
import { databaseUrl, fraction, integer, providerKey, serviceUrl } from './setting-kinds.ts';

/** The schema of each setting that most installations change. The others are in advanced-settings.ts. */
export const CORE_SETTINGS = {
  OM_HOST: z
    .string()
    .default('127.0.0.1')
    .describe('Address to listen on. Without a key only a loopback address is allowed.'),
  OM_PORT: integer(8080, 0, 65_535).describe('Port to listen on; 0 takes a free one.'),
  OM_DB_PATH: z
    .string()
    .default('./data/cairn.sqlite')
    .describe("The default tenant's file. The control database and further tenants live beside it."),
  OM_DATABASE_URL: databaseUrl()
    .optional()
    .describe(
      'Experimental: the PostgreSQL, 15 or newer, in which tenants, keys and settings live instead of in files. ' +
        'OM_DB_PATH then only says where this machine keeps its lock and uploads that arrive.',
    ),
  OM_DATABASES: z
    .string()
    .default('')
    .refine((text) => parseDatabases(text) !== undefined, DATABASES_FORM)
    .describe(
      'Experimental: further databases in which tenants may be placed, as name=postgres://…, comma-separated. Tenants ' +
        'that are placed nowhere else, keys and settings live in that of OM_DATABASE_URL.',
    ),
  OM_API_KEY: z
    .string()
    .min(16, 'expected at least 16 characters, better 24 or more: `openssl rand -base64 24` prints 32')
    .refine(
      (key) => key.length < 16 || !isWeakKey(key),
      'this is easily guessed: use what `openssl rand -base64 24` prints',
    )
    .optional()
    .describe("The default tenant's admin key, of at least 16 characters."),
  OM_LOG_LEVEL: z.enum(['silent', 'error', 'warn', 'info', 'debug']).default('info').describe('How much is logged.'),
  OM_EMBEDDINGS: z
    .enum(['synthetic', 'openai', 'gemini', 'ollama', 'bedrock', 'local', 'none'])
    .default('synthetic')
    .describe(
      'Who makes vectors: synthetic works offline; openai is any OpenAI-compatible server; gemini, ollama, bedrock ' +
        '(Titan v2) and local (ONNX) are as named; none searches by words only.',
    ),
  OM_VEC_DIM: integer(768, 64, 4096).describe('Dimensions of a vector. The offline embedder takes multiples of 256.'),
  OM_OPENAI_MODEL: z.string().default('text-embedding-3-small').describe('Model of OM_EMBEDDINGS=openai.'),
  OM_OPENAI_BASE_URL: serviceUrl()
    .default('https://api.openai.com/v1')
    .describe('Base URL of the OpenAI-compatible server.'),
  OPENAI_API_KEY: providerKey().describe('Key sent to the OpenAI-compatible server.'),
  OM_MIN_SCORE: fraction(0.3).describe(
    'Hits with a lower score are not returned, unless a query sets its own limit (0..1). One unrelated query in ' +
      'twenty reaches 0.3; 0 returns all hits.',
  ),
  REDIS_URL: z
    .url({ protocol: /^rediss?$/, error: 'expected redis://host:port or rediss://host:port' })
    .optional()
    .describe(
      'Redis that carries jobs to worker processes (BullMQ). Without it OM_DATABASE_URL does, or else ' +
        'this process works alone.',
    ),
};
