import path from 'node:path';
import { createLanguageModel } from '../adapters/create-language-model.ts';
import { createIndexMemory } from '../adapters/following-index/index-memory.ts';
import { createPageFetcher } from '../adapters/page-fetcher.ts';
import { createParserPool } from '../adapters/parser-pool.ts';
import { requireVectorIndex } from '../adapters/vector-index/open-vector-index.ts';
import type { Config } from '../config.ts';
import { placeOf } from '../control/place-of.ts';
import type { Metrics } from '../metrics.ts';
import { silentLogger, type DocumentParser, type LanguageModel, type Logger, type PageFetcher } from '../ports.ts';
import { openLimitedLanguageModel, type ProviderOptions } from '../providers/open-providers.ts';
import { openTenant } from '../tenant-file/open-tenant.ts';
import { createTenantPool, type TenantPool } from '../tenant-file/tenant-pool.ts';
import { openEmbeddingSources, type EmbeddingSources } from './embedding-sources.ts';

/** What a thread needs to read or to work: embedders, the language model, the pool of open files. */
export interface EngineParts extends Omit<EmbeddingSources, 'close'> {
  /** The language model of `OM_LLM_MODEL`, with its limits; null if none is configured. */
  readonly languageModel: LanguageModel | null;
  /** The tenants' files that are open on this thread. The caller of `openParts` closes it. */
  readonly pool: TenantPool;
  /** The limits on provider calls, which all processes share. The caller of `openParts` closes them. */
  readonly budget: { close(): void };
  /**
   * Counts that the word index of a file has a format which Cairn cannot read, so that SQLite's own functions search
   * it, and logs each such file once. The argument is the path of the file.
   */
  readonly reportUnknownFormat: (path: string) => void;
  /** Reads documents; null for a thread with the role `reader`. The caller of `openParts` closes it. */
  readonly documentParser: DocumentParser | null;
  /** Fetches web pages; null for a thread with the role `reader`. The caller of `openParts` closes it. */
  readonly pageFetcher: PageFetcher | null;
}

/** Options of `openParts`: the options of the providers, a logger (silent by default) and the role of the thread. */
export interface EnginePartsOptions extends ProviderOptions {
  readonly logger?: Logger;
  /** Role of the thread: `reader` answers queries; `worker` runs steps, commits, and reads documents. */
  readonly role: 'reader' | 'worker';
  /**
   * Whether the thread serves requests, so that a read of a tenant in PostgreSQL waits for 5 s at most for a statement;
   * false by default.
   */
  readonly waitsBriefly?: boolean;
}

/**
 * Opens the embedders, their gatherers, the language model and a pool of files for one thread, and for a worker also
 * the parser of documents and the fetcher of pages.
 * @param options.onCall called with every provider call, for the log of calls
 * @throws EngineError `invalid` if this machine cannot run the vector index of the settings
 */
export function openParts({
  logger = silentLogger,
  role,
  waitsBriefly = false,
  ...options
}: EnginePartsOptions): EngineParts {
  const { config, clock, metrics } = options;
  requireVectorIndex(config.OM_VECTOR_INDEX);
  const { close: closeSources, ...sources } = openEmbeddingSources(options);
  const model = createLanguageModel(config);
  const standIn =
    config.OM_LLM_RERANK_FALLBACK === undefined ? null : createLanguageModel(config, config.OM_LLM_RERANK_FALLBACK);
  const limitedModel = model && openLimitedLanguageModel(model, standIn, options);
  const indexMemory = createIndexMemory(config.OM_INDEX_MEMORY_MB * 1024 * 1024);
  const reportUnknownFormat = createFormatReporter(metrics, logger);
  const placed = (path: string) => {
    const place = placeOf(config, path);
    return place && { ...place, waitsBriefly };
  };
  const pool = createTenantPool(config.OM_OPEN_TENANTS, (path) =>
    openTenant(path, {
      place: placed(path),
      role,
      identity: sources.identity,
      now: clock.now(),
      indexMemory,
      vectorIndex: config.OM_VECTOR_INDEX,
      wordIndex: config.OM_WORD_INDEX,
      events: config.OM_EVENTS,
      onUnknownWordFormat: () => reportUnknownFormat(path),
    }),
  );
  return {
    ...sources,
    languageModel: limitedModel && limitedModel.languageModel,
    pool,
    reportUnknownFormat,
    budget: {
      close() {
        closeSources();
        limitedModel?.close();
      },
    },
    ...(role === 'worker' ? createDocumentReaders(config, metrics) : { documentParser: null, pageFetcher: null }),
  };
}

/**
 * Creates the function that reports a word index of an unknown format, as `OpenTenantOptions.onUnknownWordFormat` calls
 * it. It counts each call, and logs each file once. Its argument is the path of the file.
 */
function createFormatReporter(metrics: Metrics, logger: Logger): (file: string) => void {
  const reported = new Set<string>();
  return (file) => {
    metrics.wordIndexFallbacks.inc();
    if (reported.has(file)) return;
    reported.add(file);
    const until = 'a version of Cairn that knows it, or cairn rebuild-index';
    logger.warn({ file: path.basename(file), readBy: 'fts5-match', until }, 'word_index_format_unknown');
  };
}

/**
 * Creates the parser of documents and the fetcher of pages of a worker. Neither starts a process or opens a socket
 * before its first use.
 */
function createDocumentReaders(config: Config, metrics: Metrics): Pick<EngineParts, 'documentParser' | 'pageFetcher'> {
  return {
    documentParser: createParserPool({
      size: config.OM_PARSERS,
      timeoutMs: config.OM_PARSE_TIMEOUT_MS,
      heapMb: config.OM_PARSE_HEAP_MB,
      onStart: () => metrics.parsers.inc(),
      onExit(reason) {
        metrics.parsers.dec();
        metrics.parserExits.inc({ reason });
      },
    }),
    pageFetcher: createPageFetcher({
      timeoutMs: config.OM_URL_TIMEOUT_MS,
      maxBytes: config.OM_URL_MAX_MB * 1024 * 1024,
      denied: config.deniedNetworks,
    }),
  };
}
