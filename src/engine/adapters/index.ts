/**
 * The exports of `cairn-memory/adapters`: the parts that call other services. These are embedders and language models
 * with the ports that they implement, tracing, the check of an identity provider's tokens, and the queues in Redis or
 * PostgreSQL. The package of a provider, of OpenTelemetry, of tokens, of BullMQ or of PostgreSQL is loaded by the
 * function that needs it.
 */

export { createCodeFlow, type CodeFlow, type CodeFlowSecrets } from './code-flow.ts';
export { createEmbedder } from './create-embedder.ts';
export {
  type AnswerRoom,
  createFederationClient,
  FEDERATED_HEADER,
  type FederationClient,
  loadHttpClient,
  type ServerAnswer,
} from './federation-client.ts';
export { createLanguageModel } from './create-language-model.ts';
export { createTracing } from './create-tracing.ts';
export { createTokenVerifier, isToken, type VerifiedToken } from './token-verifier.ts';
export { JOB_OPTIONS, noteMaintained, openQueuesToShow, openStepQueues } from './bullmq-queues.ts';
export { openQueueLink } from './open-queue-link.ts';
export type { QueueLink, QueueLinkOptions } from './queue-link.ts';
export type {
  Clock,
  DocumentParser,
  Embedder,
  EmbedOptions,
  JobDispatcher,
  LanguageModel,
  Logger,
  PageFetcher,
  VectorIndex,
} from '../ports.ts';
