import { createHmac } from 'node:crypto';
import type { Network } from '../config.ts';
import type { Clock } from '../ports.ts';
import type { WebhookMessage, WebhookSender } from '../webhook-sender.ts';
import { WEBHOOK_TIMEOUT_MS } from '../types.ts';
import { VERSION } from '../version.ts';
import { connectToAddress, guardedConnector, resolveByDns } from './guarded-connector.ts';
import { checkGuardedUrl, failureOf, isOrdinary } from './guarded-url.ts';
import { pacedReplies } from './paced-replies.ts';

export interface WebhookSenderOptions {
  /** Networks to which nothing is sent, besides those that are not public, unless `allowed` has the address. */
  readonly denied: readonly Network[];
  /** Networks to which messages are sent although they are not public or are denied. */
  readonly allowed: readonly Network[];
  readonly clock: Clock;
  /**
   * Time limit of one attempt (ms), for resolving host names and the reply together; `WEBHOOK_TIMEOUT_MS` (15 s) by
   * default.
   */
  readonly timeoutMs?: number;
}

/**
 * Creates a sender of webhook messages that are signed by the rules of Standard Webhooks: HMAC-SHA256 over id, time and
 * body. A message goes to public addresses by https at port 443; by http and at other ports only to `allowed` networks.
 * Each connection is opened to an address that was checked just before. Redirects are not followed, and only the status
 * of a reply is used. `send` reports a failure in its result, and rejects only with the abort reason of `signal`.
 */
export function createWebhookSender({
  denied,
  allowed,
  clock,
  timeoutMs = WEBHOOK_TIMEOUT_MS,
}: WebhookSenderOptions): WebhookSender {
  return {
    check(text) {
      const example = 'https://example.com/hook';
      checkGuardedUrl(text, { subject: 'webhook', example, allowed, setting: 'OM_WEBHOOK_ALLOW' });
    },
    async send(message, signal) {
      const url = new URL(message.url);
      const timeout = AbortSignal.timeout(timeoutMs);
      const either = AbortSignal.any([signal, timeout]);
      const { Agent, request } = await import('undici');
      const agent = new Agent({
        connect: guardedConnector({
          ...{ resolve: resolveByDns, connect: connectToAddress, denied, allowed, signal: either },
          onlyAllowed: !isOrdinary(url),
        }),
        headersTimeout: timeoutMs,
      });
      try {
        const headers = headersOf(message, Math.floor(clock.now() / 1000));
        const reply = await request(url, {
          dispatcher: pacedReplies(agent),
          method: 'POST',
          headers,
          body: message.body,
          signal: either,
        });
        reply.body.on('error', () => {}).destroy();
        const { statusCode: status } = reply;
        return { status, error: status >= 200 && status < 300 ? null : `the receiver answered ${status}` };
      } catch (error) {
        signal.throwIfAborted();
        return { status: null, error: timeout.aborted ? `no reply within ${timeoutMs / 1000} s` : failureOf(error) };
      } finally {
        await agent.destroy();
      }
    },
  };
}

/**
 * Returns the HTTP headers of a message, with its signature.
 * @param seconds time of the attempt, Unix seconds
 */
function headersOf({ id, secret, body }: WebhookMessage, seconds: number): Record<string, string> {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`, 'utf8').digest('base64');
  return {
    'content-type': 'application/json',
    'user-agent': `cairn/${VERSION}`,
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${signature}`,
  };
}
