/** The interface through which events are sent to webhooks. */

/** A message to a webhook. */
export interface WebhookMessage {
  readonly url: string;
  /** Value of the header `webhook-id`. */
  readonly id: string;
  /** Secret with which the message is signed: `whsec_` and base64. */
  readonly secret: string;
  /** Body of the request, JSON. */
  readonly body: string;
}

/** How one attempt to send a message to a webhook ended. */
interface WebhookReply {
  /** HTTP status; null if no reply came. */
  readonly status: number | null;
  /** What was wrong, without any host or address; null after a reply of status 2xx. */
  readonly error: string | null;
}

/** Sends signed messages to webhooks. It connects only to addresses that are allowed, whatever DNS replies say. */
export interface WebhookSender {
  /**
   * Checks a URL before it is stored.
   * @throws EngineError `invalid` for a URL to which webhooks are never sent
   */
  check(url: string): void;
  /**
   * Sends a message once and returns how that ended.
   * @throws the reason of `signal` if it is aborted
   */
  send(message: WebhookMessage, signal: AbortSignal): Promise<WebhookReply>;
}
