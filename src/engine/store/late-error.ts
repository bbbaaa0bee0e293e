import { EngineError } from '../errors.ts';

/**
 * The error of a statement that showed only after the statement: its database takes statements whose result nobody
 * waits for together with a later one. The write has failed, and nothing says which part of it the statement was of.
 */
export class LateError extends EngineError {}
