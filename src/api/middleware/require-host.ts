import type { NextFunction, Request, Response } from 'express';
import { withoutStack } from '../without-stack.ts';

/**
 * Middleware that refuses requests of HTTP/1.1 without the header `Host`, as RFC 9112 demands, and closes their
 * connections. Node would refuse them by itself, but would not let them wait for earlier requests of their connection
 * as `inOrder` does.
 * @throws EngineError `invalid`
 */
export function requireHost({ headers, httpVersion }: Request, response: Response, next: NextFunction): void {
  if (headers.host !== undefined || httpVersion === '1.0') return next();
  response.setHeader('connection', 'close');
  throw withoutStack('invalid', 'the header Host is missing');
}
