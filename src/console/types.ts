/** The types of requests and replies, as the routes of the API declare them. */
import type { z } from 'zod';
import type { activityReply, backupsReply, decayReply, settingsReply, tenantPage } from '../api/schemas/admin.ts';
import type { sessionReply, signedOutReply } from '../api/schemas/console.ts';
import type { consolidationEnded, consolidationList, consolidationProposals } from '../api/schemas/consolidations.ts';
import type { documentPage, receiptReply } from '../api/schemas/document-replies.ts';
import type { entityDetails, entityPage } from '../api/schemas/entities.ts';
import type { jobPage } from '../api/schemas/jobs.ts';
import type { deletedReply, historyReply, timelineReply } from '../api/schemas/memory-replies.ts';
import type { federatedAnswer, serverList } from '../api/schemas/federation.ts';
import type { evalList, evalRunReply, evalRuns, evalSet } from '../api/schemas/evals.ts';
import type { graphReply } from '../api/schemas/graph.ts';
import type { madeKey } from '../api/schemas/keys.ts';
import type { learningReply } from '../api/schemas/learned.ts';
import type { linkList, nearDuplicateList, proposalList } from '../api/schemas/links.ts';
import type { memoryListReply, nameListReply } from '../api/schemas/lists.ts';
import type { providerCallPage, providerUsageReply } from '../api/schemas/providers.ts';
import type { recallListReply, recallReply, replayReply } from '../api/schemas/recalls.ts';
import type { createdStanding } from '../api/schemas/standing.ts';
import type { QueryReplyBody } from '../api/schemas/query-replies.ts';
import type { querySchema } from '../api/schemas/query.ts';
import type { sectorsReply, statsReply } from '../api/schemas/service.ts';
import type { Wire } from '../api/schemas/values.ts';

export type { AuditItem } from '../api/schemas/audit.ts';
export type { ChunkItem, DocumentItem } from '../api/schemas/document-replies.ts';
export type { JobItem } from '../api/schemas/jobs.ts';
export type { KeyItem } from '../api/schemas/keys.ts';
export type { LinkItem, MemoryItem, RevisionItem } from '../api/schemas/memory-replies.ts';
export type { Problem } from '../api/schemas/problem.ts';
export type { ErasureItem, ErasureReply } from '../api/schemas/erasures.ts';
export type { LearnedItem } from '../api/schemas/learned.ts';
export type {
  CreatedWebhookItem,
  DeliveryItem,
  NewWebhookInput,
  StandingAnswerItem,
  StandingItem,
  WebhookItem,
} from '../api/schemas/standing.ts';
export type { ConsolidationItem } from '../api/schemas/consolidations.ts';
export type { ServerItem } from '../api/schemas/federation.ts';
export type { ProviderCallItem, ReembedItem } from '../api/schemas/providers.ts';
export type { ExplanationItem, MatchItem } from '../api/schemas/query-replies.ts';

export type SessionItem = Wire<typeof sessionReply>;
export type SignedOut = Wire<typeof signedOutReply>;
export type Role = NonNullable<SessionItem['caller']>['role'];
export type MemoryList = Wire<typeof memoryListReply>;
export type NameList = Wire<typeof nameListReply>;
export type Graph = Wire<typeof graphReply>;
export type DocumentPage = Wire<typeof documentPage>;
export type EntityPage = Wire<typeof entityPage>;
export type EntityDetails = Wire<typeof entityDetails>;
export type JobPage = Wire<typeof jobPage>;
export type Deleted = Wire<typeof deletedReply>;
export type History = Wire<typeof historyReply>;
export type Timeline = Wire<typeof timelineReply>;
export type LinkList = Wire<typeof linkList>;
export type ProviderCalls = Wire<typeof providerCallPage>;
export type ProviderUsage = Wire<typeof providerUsageReply>;
export type Stats = Wire<typeof statsReply>;
export type QueryBody = z.input<typeof querySchema>;
export type Answer = Extract<QueryReplyBody, { readonly matches: unknown }>;
export type Sector = Wire<typeof sectorsReply>['sectors'][number];
export type Activity = Wire<typeof activityReply>;
export type Backups = Wire<typeof backupsReply>;
export type DecayPreview = Wire<typeof decayReply>;
export type SettingItem = Wire<typeof settingsReply>['items'][number];
export type TenantPage = Wire<typeof tenantPage>;
export type MadeKey = Wire<typeof madeKey>;
export type EvalSet = Wire<typeof evalSet>;
export type EvalSummary = Wire<typeof evalList>['items'][number];
export type EvalRun = Wire<typeof evalRuns>['items'][number];
export type EvalOutcomes = Wire<typeof evalRunReply>;
export type Proposals = Wire<typeof proposalList>;
export type NearDuplicates = Wire<typeof nearDuplicateList>;
export type RecallList = Wire<typeof recallListReply>;
export type TextReceipt = Wire<typeof receiptReply>;
export type Learning = Wire<typeof learningReply>;
export type CreatedStanding = Wire<typeof createdStanding>;
export type ConsolidationList = Wire<typeof consolidationList>;
export type ConsolidationProposals = Wire<typeof consolidationProposals>;
export type ConsolidationEnded = Wire<typeof consolidationEnded>;
export type FederatedAnswer = Wire<typeof federatedAnswer>;
export type ServerList = Wire<typeof serverList>;
export type Recall = Wire<typeof recallReply>;
export type Replay = Wire<typeof replayReply>;
export type SectorConfigs = Wire<typeof sectorsReply>['configs'];
