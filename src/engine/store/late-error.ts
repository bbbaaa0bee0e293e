import { EngineError } from '../errors.ts';

/**
 * Error of an earlier statement that shows only when a later statement is sent, since a database may send queued
 * statements together with a later one. The write has failed, and it is unknown which part of the write the failed
 * statement belongs to.
 */
export class LateError extends EngineError {}
