/** The memory's plain data. Times are Unix milliseconds; scores and weights lie in 0..1 unless said otherwise. */

export const SECTORS = ['episodic', 'semantic', 'procedural', 'emotional', 'reflective'] as const;
export type Sector = (typeof SECTORS)[number];

export const MEMORY_STATES = ['queued', 'ready', 'failed'] as const;
export type MemoryState = (typeof MEMORY_STATES)[number];

export const MEMORY_STATUSES = ['active', 'superseded', 'contradicted', 'archived'] as const;
export type MemoryStatus = (typeof MEMORY_STATUSES)[number];

export const EDGE_TYPES = [
  'waypoint',
  'mentions',
  'supports',
  'contradicts',
  'depends_on',
  'same_as',
  'supersedes',
  'derived_from',
] as const;
export type EdgeType = (typeof EDGE_TYPES)[number];

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
/** Most bytes of a memory's metadata as JSON. */
export const METADATA_BYTES_MOST = 16 * 1024;
/**
 * Most conditions on metadata in one filter, each operator of a key being one. Each reads a memory's metadata anew: so many over 30,000
 * memories take half a second.
 */
export const METADATA_CONDITIONS_MOST = 32;

export type Metadata = { readonly [key: string]: Json };

/** What a caller may say about a memory it adds. Only `content` is required; the API fills the rest with these defaults. */
export interface NewMemory {
  readonly content: string;
  /** '' for none. */
  readonly userId: string;
  readonly sessionId: string;
  readonly tags: readonly string[];
  readonly files: readonly string[];
  readonly metadata: Metadata;
  readonly type: string | null;
  readonly title: string;
  /** '' to have it read off the text. */
  readonly gist: string;
  /** null to have them read off the text. */
  readonly entities: readonly string[] | null;
  readonly eventTime: number | null;
  readonly validFrom: number | null;
  readonly validTo: number | null;
  readonly expiresAt: number | null;
  /** Sets the initial salience when given. */
  readonly importance: number | null;
  readonly confidence: number;
  readonly externalId: string | null;
}

/** A stored memory as a reader sees it. `salience` and `strength` are the decayed values at the moment of reading. */
export interface Memory {
  readonly id: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly content: string;
  readonly title: string;
  /** As stated, '' where nobody did: `shownGist` (entities/skim.ts) reads one off the text. */
  readonly gist: string;
  /** As stated, none where nobody did: `shownEntities`. */
  readonly entities: readonly string[];
  readonly type: string | null;
  readonly tags: readonly string[];
  readonly files: readonly string[];
  readonly metadata: Metadata;
  readonly primarySector: Sector;
  /** Primary first, then the additional ones in the order of SECTORS. */
  readonly sectors: readonly Sector[];
  readonly state: MemoryState;
  readonly status: MemoryStatus;
  readonly salience: number;
  readonly strength: number;
  readonly decayLambda: number;
  readonly confidence: number;
  readonly importance: number | null;
  readonly accessCount: number;
  readonly lastSeenAt: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly eventTime: number;
  readonly validFrom: number | null;
  readonly validTo: number | null;
  readonly expiresAt: number | null;
  readonly externalId: string | null;
  readonly version: number;
}

/** Fields a PATCH may change. `undefined` leaves a field alone; in `metadata` a null value removes that key. */
export interface MemoryPatch {
  readonly content?: string | undefined;
  readonly title?: string | undefined;
  readonly gist?: string | undefined;
  readonly entities?: readonly string[] | undefined;
  readonly type?: string | null | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly files?: readonly string[] | undefined;
  readonly metadata?: Metadata | undefined;
  readonly eventTime?: number | undefined;
  readonly validFrom?: number | null | undefined;
  readonly validTo?: number | null | undefined;
  readonly expiresAt?: number | null | undefined;
  readonly importance?: number | null | undefined;
  readonly confidence?: number | undefined;
  readonly status?: Extract<MemoryStatus, 'active' | 'archived'> | undefined;
}

/** What an update replaced. */
export interface Revision {
  readonly version: number;
  readonly replacedAt: number;
  /** The old values of the fields that the update changed, by their names in `Memory`. */
  readonly replaced: Metadata;
}

/** One link as seen from a memory: `direction` says whether the memory is its source. */
export interface Link {
  readonly id: string;
  readonly type: EdgeType;
  readonly direction: 'out' | 'in';
  readonly similarity: number | null;
  readonly weight: number;
  readonly automatic: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** What became of one item of an add. `token` and `jobId` are null where there was nothing to do. */
export type AddOutcome =
  | { readonly kind: 'accepted'; readonly id: string; readonly jobId: string; readonly jobSeq: number }
  | {
      readonly kind: 'duplicate';
      readonly id: string;
      readonly primarySector: Sector;
      readonly sectors: readonly Sector[];
      readonly state: MemoryState;
    }
  | { readonly kind: 'rejected'; readonly error: { readonly code: string; readonly message: string } };

/** What a delete removed, as counts of rows. */
export interface DeleteReceipt {
  readonly memories: number;
  readonly documents: number;
  readonly vectors: number;
  readonly edges: number;
  readonly revisions: number;
  readonly jobs: number;
  readonly cachedEmbeddings: number;
  readonly storedReplies: number;
}

export type MetadataCondition =
  | Json
  | {
      readonly $eq?: Json;
      readonly $ne?: Json;
      readonly $gt?: number | string;
      readonly $gte?: number | string;
      readonly $lt?: number | string;
      readonly $lte?: number | string;
      readonly $in?: readonly Json[];
      readonly $nin?: readonly Json[];
      readonly $exists?: boolean;
    };

/** Which memories a query, list or delete is about. Fields are joined by AND, values of one list by OR. Times: half-open. */
export interface MemoryFilter {
  readonly userIds?: readonly string[] | undefined;
  readonly sessionIds?: readonly string[] | undefined;
  readonly sectors?: readonly Sector[] | undefined;
  readonly types?: readonly string[] | undefined;
  /** A memory must carry all of them. */
  readonly tags?: readonly string[] | undefined;
  readonly statuses?: readonly MemoryStatus[] | undefined;
  readonly externalIds?: readonly string[] | undefined;
  /** Ids of documents: their chunks and roots. */
  readonly documentIds?: readonly string[] | undefined;
  readonly eventFrom?: number | undefined;
  readonly eventTo?: number | undefined;
  readonly createdFrom?: number | undefined;
  readonly createdTo?: number | undefined;
  readonly metadata?: { readonly [path: string]: MetadataCondition } | undefined;
}

/** What a delete may ask for: what documents, too, say of themselves before they are read. */
export type ErasureFilter = Pick<MemoryFilter, 'userIds' | 'sessionIds' | 'tags'>;

export const PROFILES = ['composite', 'activation', 'retention', 'fusion'] as const;
/** How a candidate's features become its raw score; `retrieve/score.ts` has the formulas and where they come from. */
export type Profile = (typeof PROFILES)[number];

/** The weights of all profiles; each profile reads its own. `alpha` is retention's exponent. */
export const WEIGHT_NAMES = [
  'similarity',
  'salience',
  'recency',
  'waypoint',
  'activation',
  'strength',
  'confidence',
  'alpha',
] as const;
export type WeightName = (typeof WEIGHT_NAMES)[number];
export type Weights = Readonly<Partial<Record<WeightName, number>>>;

/** The columns of the word index, in its order. Two thirds of it are context, and FTS5 spends two bytes on each place outside of the first column. */
export const TEXT_COLUMNS = ['context', 'title', 'content', 'gist', 'entities', 'tags', 'identifiers'] as const;
export type TextColumn = (typeof TEXT_COLUMNS)[number];

/** `builtin` costs no call; `llm` asks a language model about the first 20 and keeps the order if it fails. */
export const RERANKERS = ['none', 'builtin', 'llm'] as const;
export type Reranker = (typeof RERANKERS)[number];

export const EXPANSIONS = ['neighbours', 'document'] as const;
/** What is returned around a hit: what was said before and after it in its session, or what it is derived from. */
export type Expansion = (typeof EXPANSIONS)[number];

/** How an answer is written: its hits as data, as a text laid out for a prompt, or as plain text with a hit a line. */
export const FORMATS = ['json', 'prompt', 'text'] as const;
export type Format = (typeof FORMATS)[number];

/**
 * A moment to look back to. On the valid axis a memory takes part if it had happened (`eventTime`) and held (`validFrom`,
 * `validTo`) then; on the recorded axis, if it had been stored by then, and it is shown as it was then. With `valid` alone it is
 * shown as it is now: what was corrected since was no more true then.
 */
export interface AsOf {
  readonly valid?: number | undefined;
  readonly recorded?: number | undefined;
}

/** What may be set per request and, as defaults, per tenant. */
export interface RetrievalOptions {
  readonly profile?: Profile | undefined;
  readonly weights?: Weights | undefined;
  /** Each 0..10; what is left out keeps its default. */
  readonly columnWeights?: Readonly<Partial<Record<TextColumn, number>>> | undefined;
  /** 0 words only .. 1 vectors only; the embedder's own default where absent. */
  readonly vectorWeight?: number | undefined;
  /** Candidates taken from the word and from the vector list, 1..1000; what `k` asks for where absent. */
  readonly kSparse?: number | undefined;
  readonly kDense?: number | undefined;
  /** Nearest memories are looked for in all sectors at once, or in each sector that the query speaks of. */
  readonly denseSectors?: 'all' | 'candidate' | undefined;
  /** 0..1: how much a memory gains from others of its session that also fit. */
  readonly sessionPrior?: number | undefined;
  /** 0..4 */
  readonly maxHops?: number | undefined;
  /** 0..1 */
  readonly decayPerHop?: number | undefined;
  /** Whether entities of the query bring memories about related entities. */
  readonly entityGraph?: boolean | undefined;
  readonly rerank?: Reranker | undefined;
  /** Hits under this calibrated score are left out, 0..1. */
  readonly minScore?: number | undefined;
  /** Hits under this share of the best hit's raw score are left out, 0..1. */
  readonly relativeFloor?: number | undefined;
  /** Most hits of one document; 0 for no bound. Applies while `k` is at most 10. */
  readonly perDocument?: number | undefined;
}

/** The greatest that a query may ask for; `candidates` bounds `kSparse` and `kDense`. */
export const QUERY_LIMITS = { k: 200, candidates: 1_000, hops: 4, tokenBudget: 1_000_000 } as const;

export interface MemoryQuery extends RetrievalOptions {
  readonly query: string;
  /** 1..200 */
  readonly k: number;
  readonly filter: MemoryFilter;
  /** What the hits' contents may hold by estimate, or the whole text where `format` asks for one. */
  readonly tokenBudget?: number | undefined;
  readonly format?: Format | undefined;
  /** Superseded, contradicted and archived memories take part at half their score. */
  readonly deepRecall?: boolean | undefined;
  readonly asOf?: AsOf | undefined;
  /** Most hits of a kind: what is derived from others (knowledge), and what others are derived from (episodes). */
  readonly topK?: { readonly knowledge?: number | undefined; readonly episodes?: number | undefined } | undefined;
  /** Return the episodes that the hits belong to. By default only a prompt does. */
  readonly includeEpisodes?: boolean | undefined;
  readonly expand?: readonly Expansion[] | undefined;
  readonly reinforce?: boolean | undefined;
  readonly explain?: boolean | undefined;
}

/** What the stages found out about a memory; each in 0..1. */
export interface Features {
  /** How well it fits the query, as a share of the best candidate's fit. */
  readonly similarity: number;
  /** The fused rank score as a share of the best for a direct hit, what spreading brought for others. */
  readonly activation: number;
  /** The best activation that arrived over a link, 0 if none or less than what the query itself gave. */
  readonly waypoint: number;
  readonly salience: number;
  readonly strength: number;
  readonly recency: number;
  readonly retention: number;
  readonly confidence: number;
}

/** A factor that a later stage put on a raw score. */
export interface Adjustment {
  readonly by: 'contradicted' | 'superseded' | 'status' | 'rerank' | 'session' | 'model';
  readonly factor: number;
  /** The memory that caused it. */
  readonly because?: string;
  /** Of a contradiction that a language model found and nobody stated. */
  readonly automatic?: true;
}

/** Why a hit came back: ranks count from 1, null where the stage did not find it. */
export interface HitExplanation {
  readonly lexical: { readonly rank: number; readonly bm25: number; readonly coverage: number } | null;
  readonly dense: { readonly rank: number; readonly similarity: number; readonly window: number } | null;
  readonly fused: { readonly rank: number; readonly score: number } | null;
  /** Over which link it was reached, or by which entity of the query. */
  readonly arrival: {
    readonly from: string | null;
    readonly via: EdgeType | 'entity';
    readonly entity?: string;
    readonly weight: number;
    readonly hops: number;
    readonly activation: number;
  } | null;
  readonly profile: Profile;
  readonly features: Features;
  readonly weights: Weights;
  readonly adjustments: readonly Adjustment[];
  /** What the built-in reranker measured, 0..1 each; null where it did not run. */
  readonly rerank: Readonly<Record<string, number>> | null;
  /** How sure it is that the query is about these memories at all, 0..1, the same for all its hits. */
  readonly confidence: number;
  /** The query's terms that the memory or its context holds. */
  readonly terms: readonly string[];
}

export interface Hit {
  readonly memory: Memory;
  /** 0..1, calibrated: comparable between queries. */
  readonly score: number;
  /** The profile's own value, adjusted by the later stages. */
  readonly rawScore: number;
  /** Ids from the direct hit to this memory; only itself for a direct hit. */
  readonly path: readonly string[];
  /** The memory that led here and that this one supersedes. */
  readonly supersedes?: string;
  readonly neighbours?: { readonly before: readonly Memory[]; readonly after: readonly Memory[] };
  /** What it is derived from, nearest first. */
  readonly sources?: readonly Memory[];
  /** Where it stands in its document; left out for what no document brought. */
  readonly document?: Provenance;
  readonly explain?: HitExplanation;
}

/** What hits have in common: the memory they are derived from, else their session. */
export interface Episode {
  readonly kind: 'memory' | 'session';
  /** The memory's id, or the session's. */
  readonly id: string;
  readonly userId: string;
  readonly title: string;
  /** The root memory; null for a session, which has no text of its own. */
  readonly memory: Memory | null;
  readonly memoryIds: readonly string[];
}

export interface StageTrace {
  readonly stage: string;
  readonly ms: number;
  readonly in: number;
  readonly out: number;
  /** The plan chosen, terms dropped, reason for degrading. */
  readonly note?: string;
}

export interface QueryResult {
  readonly hits: readonly Hit[];
  /** True if vectors should have taken part and could not: the answer rests on words alone. */
  readonly degraded: boolean;
  readonly recallId: string;
  /** What the floor did to this answer; absent where it took nothing away and was free to. */
  readonly floor?: FloorReport;
  readonly episodes?: readonly Episode[];
  /** The hits as text, where the query asks for one; `tokens` as estimated. */
  readonly rendered?: { readonly text: string; readonly tokens: number };
  readonly trace?: readonly StageTrace[];
}

/** What the floor under the scores did to one answer. */
export interface FloorReport {
  /** The least score that was asked for, by the request or else by the defaults, 0..1. */
  readonly minScore: number;
  /** Whether memories under it were left out. */
  readonly acted: boolean;
  /** Why a default floor did not act: nothing tells which of several sentences asks, so that scores say too little. */
  readonly reason?: 'asking_sentence_unknown';
  /** How many candidates had a lower score. */
  readonly below: number;
  /** The best of their scores; null where there were none. */
  readonly bestBelow: number | null;
}

/** Where on its way through the stages a memory stands or fell out. */
export const OUTCOMES = [
  'returned',
  'filtered',
  'no_match',
  'not_a_candidate',
  'superseded',
  'below_min_score',
  'below_relative_floor',
  'document_limit',
  'kind_limit',
  'beyond_k',
  'over_budget',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** Why a memory did or did not come back for a query, and what would have changed it. */
export interface MemoryExplanation {
  readonly memoryId: string;
  readonly outcome: Outcome;
  /** 1 for the best; null where it was no candidate. */
  readonly rank: number | null;
  readonly score: number | null;
  readonly rawScore: number | null;
  /** The conditions of the filter that it fails, by their names on the wire. */
  readonly failedFilters: readonly string[];
  /** Where it is superseded: the live end of its chain, null if that does not pass the filter. */
  readonly supersededBy: string | null;
  /** The query's terms: which stand in its own text, which only in its neighbours', which in neither. */
  readonly terms: {
    readonly matched: readonly string[];
    readonly inContext: readonly string[];
    readonly missed: readonly string[];
  };
  /** Exact cosine of its best window; null without vectors. */
  readonly cosine: number | null;
  readonly explain: HitExplanation | null;
  /** What would have brought it back, all of it together, as sentences that name the fields to change; else why nothing would. */
  readonly remedies: readonly string[];
  /** The same for a program: fields of the request by their names on the wire, null to leave one out. null if no change brings it back. */
  readonly changes: { readonly [field: string]: Json } | null;
  readonly trace: readonly StageTrace[];
}

/** What stood around a memory in time. */
export interface Timeline {
  readonly before: readonly Memory[];
  readonly anchor: Memory;
  readonly after: readonly Memory[];
}

/** A name that memories mention. */
export interface EntitySummary {
  /** Folded: lower case, without accents. */
  readonly name: string;
  /** As the first memory writes it that still mentions it. */
  readonly label: string;
  readonly type: string;
  /** How many memories that a query could find. */
  readonly mentions: number;
}

export interface EntityDetails extends EntitySummary {
  /** What is stated about it and another; the most often stated first, at most 100. */
  readonly relations: readonly {
    readonly type: string;
    /** Whether it is the relation's source. */
    readonly direction: 'out' | 'in';
    readonly name: string;
    readonly label: string;
    /** How many memories state it. */
    readonly memories: number;
  }[];
  /** The latest first, at most 100. */
  readonly memoryIds: readonly string[];
}

// ── Documents ────────────────────────────────────────────────────────────────────────────────────────────────────────

export const DOCUMENT_STATES = ['queued', 'processing', 'ready', 'empty', 'failed', 'cancelled'] as const;
/** `processing` until every chunk is embedded and linked; it is found by its words before. `empty`: read well, and no text was in it. */
export type DocumentState = (typeof DOCUMENT_STATES)[number];

export const DOCUMENT_FORMATS = [
  'pdf',
  'docx',
  'pptx',
  'xlsx',
  'epub',
  'html',
  'markdown',
  'text',
  'csv',
  'json',
  'ndjson',
  'email',
  'code',
] as const;
export type DocumentFormat = (typeof DOCUMENT_FORMATS)[number];

/** Something that was left out of a document's text, or stays in it unseen, and why. Never holds content. */
export interface DocumentWarning {
  readonly code:
    | 'page_unreadable'
    | 'hidden_text_dropped'
    | 'hidden_text_found'
    | 'base64_text'
    | 'attachment_ignored'
    | 'external_reference_ignored'
    | 'script_ignored'
    | 'undecodable_bytes'
    | 'part_unreadable';
  readonly message: string;
  readonly page?: number;
}

/** What a caller says about a document. */
export interface NewDocument {
  readonly source: UploadedFile | { readonly kind: 'url'; readonly url: string };
  readonly userId: string;
  readonly sessionId: string;
  /** One document a user: the same again replaces it where its content changed. */
  readonly externalId: string | null;
  /** '' to have it read off the file. */
  readonly title: string;
  readonly type: string | null;
  readonly tags: readonly string[];
  readonly metadata: Metadata;
  readonly eventTime: number | null;
  readonly expiresAt: number | null;
}

/** A file that stands in the uploads folder, on disk for good. */
export interface UploadedFile {
  readonly kind: 'upload';
  /** Its name in the folder. */
  readonly name: string;
  readonly bytes: number;
  readonly sha256: Uint8Array;
  /** What the caller calls it: data, never a path. '' for none. */
  readonly fileName: string;
  /** What the caller's words and the first bytes agree on; null leaves it to the parser. */
  readonly declared: DocumentFormat | null;
  readonly charset: string | null;
}

export interface Document {
  readonly id: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly externalId: string | null;
  readonly state: DocumentState;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly source: 'upload' | 'url';
  readonly url: string | null;
  readonly fileName: string | null;
  readonly format: DocumentFormat | null;
  readonly bytes: number | null;
  /** Hexadecimal, of the file's bytes. */
  readonly sha256: string | null;
  readonly title: string;
  readonly authors: readonly string[];
  readonly language: string | null;
  readonly publishedAt: number | null;
  readonly modifiedAt: number | null;
  readonly type: string | null;
  readonly tags: readonly string[];
  readonly metadata: Metadata;
  readonly eventTime: number | null;
  readonly expiresAt: number | null;
  /** The memory that stands for the whole: title, gist, outline. null until the document is shown. */
  readonly rootMemoryId: string | null;
  readonly chunks: number;
  readonly pages: number | null;
  readonly characters: number;
  readonly tokens: number;
  readonly progress: DocumentProgress;
  /** What became of its chunks; null until it is shown. */
  readonly receipt: DocumentReceipt | null;
  readonly warnings: readonly DocumentWarning[];
  /** The job that reads it, while the ledger knows it. */
  readonly jobId: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** When its words could first be found; null before. */
  readonly shownAt: number | null;
  readonly readyAt: number | null;
}

export interface DocumentProgress {
  readonly pagesDone: number;
  readonly chunks: number;
  readonly embedded: number;
  readonly linked: number;
  /** Chunks whose job has given up: found by their words. */
  readonly failed: number;
  /** Milliseconds of each stage that ended: `queued`, `fetch`, `parse`, `store`, `encode`. */
  readonly stages: Readonly<Record<string, number>>;
}

/** Chunks by what became of them: new ones, those that the document had before, and those that it lost. */
export interface DocumentReceipt {
  readonly stored: number;
  readonly kept: number;
  readonly removed: number;
}

export interface DocumentFilter {
  readonly userIds?: readonly string[] | undefined;
  readonly sessionIds?: readonly string[] | undefined;
  readonly states?: readonly DocumentState[] | undefined;
  readonly externalIds?: readonly string[] | undefined;
  readonly ids?: readonly string[] | undefined;
  /** Hexadecimal SHA-256 of the file. */
  readonly sha256?: string | undefined;
}

/** Where a hit stands in the document that it belongs to. */
export interface Provenance {
  readonly documentId: string;
  readonly title: string;
  readonly fileName: string | null;
  readonly url: string | null;
  readonly format: DocumentFormat | null;
  readonly sha256: string | null;
  /** null for the root memory, which stands for the whole. */
  readonly chunk: number | null;
  readonly chunks: number;
  readonly startOffset: number | null;
  readonly endOffset: number | null;
  readonly pageFrom: number | null;
  readonly pageTo: number | null;
  readonly headingPath: readonly string[];
  readonly ingestedAt: number;
}

export interface DocumentChunk {
  readonly memoryId: string;
  readonly provenance: Provenance;
  readonly tokens: number;
}

export const JOB_STATES = ['queued', 'active', 'failed', 'done', 'dead', 'cancelled'] as const;
export type JobState = (typeof JOB_STATES)[number];
/** `ingest` reads a document; at `settle` it waits for its chunks; at `reason` a language model is asked. */
export const JOB_STEPS = ['ingest', 'settle', 'encode', 'link', 'reason', 'done'] as const;
export type JobStep = (typeof JOB_STEPS)[number];

export const JOB_KINDS = ['memory', 'document', 'reembed', 'contradictions', 'reflection'] as const;
export type JobKind = (typeof JOB_KINDS)[number];

/** A row of the ledger as an operator sees it. `failed` waits for its next attempt at `runAt`; `dead` has given up. */
export interface Job {
  readonly id: string;
  readonly seq: number;
  readonly kind: JobKind;
  readonly memoryId: string | null;
  /** The document that it reads, or that its memory belongs to. */
  readonly documentId: string | null;
  readonly step: JobStep;
  readonly state: JobState;
  readonly priority: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly runAt: number;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly finishedAt: number | null;
  readonly timeline: readonly { readonly event: string; readonly at: number }[];
}

export type JobCounts = Readonly<Record<JobState, number>>;

/** Jobs of one step that have not ended. */
export interface StepBacklog extends Pick<JobCounts, 'queued' | 'active' | 'failed'> {
  readonly step: JobStep;
  /** When the oldest of them was made (Unix ms). */
  readonly oldestAt: number;
}

/** A tenant's ledger as a whole. */
export interface JobSummary {
  readonly counts: JobCounts;
  /** In the order of the steps; those that owe nothing are left out. */
  readonly backlog: readonly StepBacklog[];
}

/** What a provider is asked for: vectors of documents and queries, and answers of a language model. */
export const CALL_PURPOSES = ['document', 'query', 'entities', 'rerank', 'contradictions', 'reflection'] as const;
export type CallPurpose = (typeof CALL_PURPOSES)[number];

/** One call of a provider: whom, how much, how long, and at what price. Never a text. */
export interface EmbedLogEntry {
  readonly at: number;
  readonly provider: string;
  readonly model: string;
  /** 0 is the provider's own server, 1 and up are those that stand in for it. */
  readonly server: number;
  readonly purpose: CallPurpose;
  /** 1 for a prompt. */
  readonly texts: number;
  /** As billed where the reply says, else estimated. */
  readonly tokens: number;
  /** What a language model wrote. */
  readonly outputTokens: number;
  readonly ms: number;
  /** By the price table; 0 for a failed call. */
  readonly costUsd: number;
  /** null for a call that completed. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** The calls of one day, model and purpose. `texts`, tokens and cost are those of calls that completed. */
export interface ProviderUsage {
  /** `2026-11-21`, UTC */
  readonly day: string;
  readonly provider: string;
  readonly model: string;
  readonly purpose: CallPurpose;
  readonly calls: number;
  readonly failed: number;
  readonly texts: number;
  readonly tokens: number;
  readonly outputTokens: number;
  readonly costUsd: number;
  /** Texts of documents whose vector was known, and the tokens that they would have taken, by estimate. */
  readonly cachedTexts: number;
  readonly savedTokens: number;
}

export interface SectorStats {
  readonly sector: Sector;
  readonly count: number;
  readonly averageSalience: number;
}

export interface TenantStats {
  readonly memories: number;
  readonly byState: Readonly<Record<MemoryState, number>>;
  readonly vectors: number;
  readonly waypoints: number;
  readonly jobs: JobCounts;
  readonly databaseBytes: number;
  readonly walBytes: number;
}

export interface EmbeddingModel {
  readonly provider: string;
  readonly model: string;
  readonly dimensions: number;
  /** Where there is a model a sector: all of them, as `model@dimensions`. The other fields speak of the first then. */
  readonly sectors?: Readonly<Record<Sector, string>>;
}

/** Which embedding models a tenant has to do with. */
export interface EmbeddingState {
  /** The one whose vectors queries and links use; null with `OM_EMBEDDINGS=none`. */
  readonly live: EmbeddingModel | null;
  /** The one that the settings ask for: another than `live` until everything is embedded by it. */
  readonly configured: EmbeddingModel | null;
  /** Why answers rest on words alone although there are vectors; null where they do not. */
  readonly degraded: string | null;
}

export const REEMBED_PHASES = ['embed', 'link', 'drop'] as const;
/** embed: vectors beside the old ones; link: the new ones are live and waypoints are measured anew; drop: the old ones go. */
export type ReembedPhase = (typeof REEMBED_PHASES)[number];

export interface ReembedStatus {
  /** current: there is nothing to do; needed: the settings ask for another model than the live one, or memories lack vectors of it. */
  readonly state: 'current' | 'needed' | 'running' | 'paused' | 'failed';
  readonly phase: ReembedPhase | null;
  readonly live: EmbeddingModel | null;
  readonly configured: EmbeddingModel | null;
  /** Memories of this phase; those that were given up are not done. */
  readonly done: number;
  readonly total: number;
  /** Memories whose embedding was given up; their jobs are dead letters, and they are found by words alone once the new model is live. */
  readonly failed: number;
  readonly ratePerSecond: number | null;
  readonly remainingMs: number | null;
  /** What is still to be embedded, by a sample; null where nothing is. */
  readonly estimate: { readonly memories: number; readonly tokens: number } | null;
  /** Why it failed. */
  readonly error: string | null;
}

export interface AddOptions {
  readonly idempotency?: IdempotencyClaim | undefined;
  /** Bulk adds wait behind interactive ones. */
  readonly bulk?: boolean | undefined;
}

/** One use of an Idempotency-Key. `bodyHash` is SHA-256 of the request body's bytes. */
export interface IdempotencyClaim {
  readonly key: string;
  readonly route: string;
  readonly bodyHash: Uint8Array;
}

export interface AddReply {
  /** One outcome per item, in order. */
  readonly outcomes: readonly AddOutcome[];
  /** Hand it to a query to make it wait for this write; null when no job was made. */
  readonly token: string | null;
  /** True if an Idempotency-Key was known and nothing was written this time. */
  readonly replayed: boolean;
}

/** `weight` 0..1; the type's own default where absent. */
export interface NewLink {
  readonly src: string;
  readonly dst: string;
  readonly type: EdgeType;
  readonly weight?: number | undefined;
}

export interface TimelineOptions {
  /** 0..100 each */
  readonly before: number;
  readonly after: number;
  readonly sameSession: boolean;
}

/** What became of a document that was handed in. */
export interface DocumentReply {
  readonly document: Document;
  /** `unchanged`: the same file as before, nothing new to do. */
  readonly outcome: 'accepted' | 'replaced' | 'unchanged';
  /** Also of an unchanged document that is still being read. */
  readonly jobId: string | null;
  /** Hand it to a query to make it wait; null where there is nothing to wait for. */
  readonly token: string | null;
}
