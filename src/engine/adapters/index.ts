/**
 * The exports of `cairn-memory/adapters`: the parts that call other services. These are embedders and language models
 * with the ports that they implement, tracing, the check of an identity provider's tokens, and the queues in Redis. The
 * package of a provider, of OpenTelemetry, of tokens or of BullMQ is loaded by the function that needs it.
 */

export { createCodeFlow, type CodeFlow, type CodeFlowSecrets } from './code-flow.ts';
export { createEmbedder } from './create-embedder.ts';
export {
  type AnswerRoom,
  createFederationClient,
  FEDERATED_HEADER,
  type FederationClient,
  loadFederation,
  type ServerAnswer,
} from './federation-client.ts';
export { createLanguageModel } from './create-language-model.ts';
export { createTracing } from './create-tracing.ts';
export { createTokenVerifier, isToken, type VerifiedToken } from './token-verifier.ts';
export { bounded, connectRedis, noteMaintained, openQueue, openQueuesToShow, openStepQueues } from './bullmq-queues.ts';
export { JOB_OPTIONS, type BullmqOptions } from './bullmq-queues.ts';
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
