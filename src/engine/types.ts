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
  readonly gist: string;
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
  readonly eventFrom?: number | undefined;
  readonly eventTo?: number | undefined;
  readonly createdFrom?: number | undefined;
  readonly createdTo?: number | undefined;
  readonly metadata?: { readonly [path: string]: MetadataCondition } | undefined;
}

export interface CompositeWeights {
  readonly similarity: number;
  readonly salience: number;
  readonly recency: number;
  readonly waypoint: number;
}

export interface MemoryQuery {
  readonly query: string;
  /** 1..200 */
  readonly k: number;
  readonly filter: MemoryFilter;
  /** Further profiles follow; each turns the same features into `rawScore`. */
  readonly profile?: 'composite' | undefined;
  readonly weights?: Partial<CompositeWeights> | undefined;
  /** 0 words only .. 1 vectors only; the embedder's own default where absent. */
  readonly vectorWeight?: number | undefined;
  /** 0..1 in this version. */
  readonly maxHops?: number | undefined;
  readonly minScore?: number | undefined;
  readonly tokenBudget?: number | undefined;
  readonly reinforce?: boolean | undefined;
  readonly explain?: boolean | undefined;
}

/** Why a hit came back: ranks count from 1, null where the stage did not find it. */
export interface HitExplanation {
  readonly lexical: { readonly rank: number; readonly bm25: number } | null;
  readonly dense: { readonly rank: number; readonly similarity: number; readonly window: number } | null;
  readonly fused: { readonly rank: number; readonly score: number } | null;
  readonly waypoint: { readonly from: string; readonly weight: number; readonly activation: number } | null;
  readonly features: {
    readonly similarity: number;
    readonly salience: number;
    readonly recency: number;
    readonly waypoint: number;
  };
  readonly weights: CompositeWeights;
  /** How sure the query's best answer is; scales the scores of all its hits alike. */
  readonly confidence: number;
  /** The query's terms that the memory or its context holds. */
  readonly terms: readonly string[];
}

export interface Hit {
  readonly memory: Memory;
  /** 0..1 */
  readonly score: number;
  /** The profile's own value. */
  readonly rawScore: number;
  /** Ids from the direct hit to this memory; only itself for a direct hit. */
  readonly path: readonly string[];
  readonly explain?: HitExplanation;
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
  readonly trace?: readonly StageTrace[];
}

export const JOB_STATES = ['queued', 'active', 'failed', 'done', 'dead', 'cancelled'] as const;
export type JobState = (typeof JOB_STATES)[number];
export const JOB_STEPS = ['encode', 'link', 'done'] as const;
export type JobStep = (typeof JOB_STEPS)[number];

/** A row of the ledger as an operator sees it. `failed` waits for its next attempt at `runAt`; `dead` has given up. */
export interface Job {
  readonly id: string;
  readonly seq: number;
  readonly kind: 'memory';
  readonly memoryId: string | null;
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
