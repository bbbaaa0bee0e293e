/** The port over which webhooks are told of events. */

/** A message to a webhook. */
export interface WebhookMessage {
  readonly url: string;
  /** The header `webhook-id`. */
  readonly id: string;
  /** `whsec_` and base64. */
  readonly secret: string;
  /** JSON. */
  readonly body: string;
}

/** What came of one attempt to send a message. */
interface WebhookReply {
  /** HTTP status; null where no reply came. */
  readonly status: number | null;
  /** What was wrong, without any host or address; null after a reply of 2xx. */
  readonly error: string | null;
}

/** Sends signed messages to webhooks. It reaches only addresses that may be delivered to, whatever resolvers say. */
export interface WebhookSender {
  /** Checks a URL before it is stored. @throws EngineError `invalid` for one that is never delivered to */
  check(url: string): void;
  /** Sends a message once. @returns what came of it @throws whatever `signal` was aborted with */
  send(message: WebhookMessage, signal: AbortSignal): Promise<WebhookReply>;
}
