/** Settings of how texts become vectors: providers, models, batches and limits of calls. */
import { z } from 'zod';
import { parsePrices } from '../prices.ts';
import type { Sector } from '../types.ts';
import { flag, integer, providerKey, serviceUrl } from './setting-kinds.ts';

const modelOfSector = (sector: Sector) =>
  z
    .string()
    .regex(/^[^@]+(@\d{1,5})?$/, 'expected a model, or model@dimensions')
    .optional()
    .describe(
      `With OM_EMBED_MODE=advanced, the model for ${sector} memories: model, or model@dimensions if these differ ` +
        `from OM_VEC_DIM; empty for the provider's usual model.`,
    );

/** The schema of the settings of embedding, and of the caches and prices of provider calls. */
export const EMBEDDING_SETTINGS = {
  OM_GEMINI_MODEL: z.string().default('gemini-embedding-001').describe('Model of OM_EMBEDDINGS=gemini.'),
  OM_GEMINI_BASE_URL: serviceUrl()
    .default('https://generativelanguage.googleapis.com/v1beta')
    .describe('Base URL of the Gemini API.'),
  GEMINI_API_KEY: providerKey().describe('Key sent to Gemini.'),
  OM_OLLAMA_MODEL: z.string().default('nomic-embed-text').describe('Model of OM_EMBEDDINGS=ollama.'),
  OLLAMA_URL: serviceUrl().default('http://localhost:11434').describe('Base URL of the Ollama server.'),
  OM_BEDROCK_MODEL: z
    .string()
    .default('amazon.titan-embed-text-v2:0')
    .describe('Model of OM_EMBEDDINGS=bedrock, by id or ARN: a Titan Text Embeddings V2.'),
  OM_BEDROCK_BASE_URL: serviceUrl()
    .optional()
    .describe("Base URL of the Bedrock runtime where it is not the region's own, as with a VPC endpoint."),
  AWS_REGION: z.string().optional().describe('Region of Bedrock.'),
  AWS_ACCESS_KEY_ID: providerKey().describe('Access key that signs calls of Bedrock.'),
  AWS_SECRET_ACCESS_KEY: z.string().optional().describe('Secret of AWS_ACCESS_KEY_ID.'),
  AWS_SESSION_TOKEN: providerKey().describe('Session token of AWS_ACCESS_KEY_ID, if that is a temporary key.'),
  AWS_BEARER_TOKEN_BEDROCK: providerKey().describe('Bedrock API key, in place of an access key and its secret.'),
  LOCAL_MODEL_PATH: z
    .string()
    .optional()
    .describe(
      'Folder of the model of OM_EMBEDDINGS=local: model.onnx and tokenizer.json, as Hugging Face exports them.',
    ),
  OM_LOCAL_POOLING: z
    .enum(['auto', 'mean', 'cls'])
    .default('auto')
    .describe(
      "How the local model's token vectors become one vector: their mean, or the first (cls). auto takes what the " +
        "model's folder or its family says, else the mean.",
    ),
  OM_EMBED_MODE: z
    .enum(['simple', 'advanced'])
    .default('simple')
    .describe(
      'simple embeds a text once for all its sectors; advanced uses one model for each sector (openai, gemini, ' +
        'ollama, bedrock).',
    ),
  OM_ADV_EMBED_PARALLEL: flag(false).describe(
    'With OM_EMBED_MODE=advanced, whether the models of a memory or a query are asked all at once, or one after the ' +
      'other.',
  ),
  OM_EMBED_MODEL_EPISODIC: modelOfSector('episodic'),
  OM_EMBED_MODEL_SEMANTIC: modelOfSector('semantic'),
  OM_EMBED_MODEL_PROCEDURAL: modelOfSector('procedural'),
  OM_EMBED_MODEL_EMOTIONAL: modelOfSector('emotional'),
  OM_EMBED_MODEL_REFLECTIVE: modelOfSector('reflective'),
  OM_EMBED_TIMEOUT_MS: integer(30_000, 100, 600_000).describe(
    'Time limit of one provider call (ms). Time for which the process has no processor does not count.',
  ),
  OM_EMBED_DELAY_MS: integer(0, 0, 60_000).describe(
    'Shortest time between the starts of two provider calls, for all processes together (ms).',
  ),
  OM_EMBED_BATCH_TEXTS: integer(64, 1, 2048).describe('Most texts in one provider call.'),
  OM_EMBED_BATCH_TOKENS: integer(60_000, 512, 300_000).describe('Most estimated tokens in one provider call.'),
  OM_EMBED_LINGER_MS: integer(10, 0, 1000).describe('How long a batch waits for further texts (ms).'),
  OM_EMBED_RPM: integer(0, 0, 1_000_000).describe(
    'Most provider calls in any minute, for all processes together; 0 for no limit.',
  ),
  OM_EMBED_TPM: integer(0, 0, 1_000_000_000).describe(
    'Most estimated tokens in any minute, for all processes together; 0 for no limit.',
  ),
  OM_EMBED_CONCURRENCY: integer(4, 1, 64).describe('Most provider calls in flight, for each process.'),
  OM_EMBED_FALLBACK: z
    .string()
    .default('')
    .describe(
      'Base URLs that stand in for OM_OPENAI_BASE_URL while it fails, in order, comma-separated; they must serve ' +
        'the same model.',
    ),
  OM_EMBED_FALLBACK_KEY: providerKey().describe(
    'Keys for the servers of OM_EMBED_FALLBACK, in the same order, comma-separated; an empty one is not sent.',
  ),
  OM_VECTOR_PRECISION: z
    .enum(['int8', 'float16', 'float32'])
    .default('float16')
    .describe(
      'How vectors from a provider or a local model are stored. At 1,536 dimensions float16 takes 3.5 KB, int8 ' +
        'takes 1.9 and is less exact, float32 takes 6.7. A coarser choice is applied to stored vectors too, and they ' +
        'cannot be made finer again.',
    ),
  OM_PRICES: z
    .string()
    .default('')
    .refine((text) => parsePrices(text) !== undefined, 'expected model=USD or model=USD/USD, comma-separated')
    .describe(
      'Prices in USD per million tokens, comma-separated: text-embedding-3-small=0.02, or gpt-4o-mini=0.15/0.60 for ' +
        'tokens read and written. They replace the known list prices; other models cost nothing.',
    ),
  OM_QUERY_EMBED_TIMEOUT_MS: integer(800, 10, 60_000).describe(
    'How long a query waits for its vector before it is answered from words alone (ms).',
  ),
  OM_QUERY_CACHE: integer(1_000, 0, 100_000).describe(
    'How many vectors of queries are kept in memory, each for its tenant, for 10 minutes and within 16 MB; 0: none.',
  ),
  OM_LLM_CACHE: integer(4_096, 0, 100_000).describe(
    'How many answers of the model are kept in memory, each for its tenant, for 10 minutes and within 8 MB; 0: none.',
  ),
  OM_LLM_RERANK_FALLBACK: z
    .string()
    .optional()
    .describe('Another model of OM_LLM_BASE_URL, which is asked to rerank where OM_LLM_MODEL fails; empty for none.'),
  OM_REEMBED: z
    .enum(['auto', 'manual'])
    .optional()
    .describe(
      'After a change of the model, auto embeds all memories again, and manual waits for cairn reembed. If unset: ' +
        'auto where that costs nothing (synthetic, local), else manual.',
    ),
};
