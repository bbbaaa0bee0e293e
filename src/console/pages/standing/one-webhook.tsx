import { useState } from 'preact/hooks';
import { address, changeParams, go, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Choice, Empty, Failed, PageHead, Time, Waiting } from '../../parts/basics.tsx';
import { count } from '../../parts/format.ts';
import { Remove } from '../../parts/entry-list.tsx';
import { Table } from '../../parts/table.tsx';
import { say, sayRefusal } from '../../parts/toast.tsx';
import { useInterval, useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { DeliveryItem, WebhookItem } from '../../types.ts';
import { describeEvents, WEBHOOKS } from './webhooks.tsx';

/** Number of latest deliveries that are listed. */
const LISTED = 100;
/** Time between two reloads (ms). */
const LOOK_MS = 3_000;
const LOOKS: Readonly<Record<DeliveryItem['state'], string>> = {
  pending: 'chip-warn',
  delivered: 'chip-good',
  dead: 'chip-bad',
};

/** Shows the page of one webhook with its latest 100 deliveries, optionally of one state, reloaded every 3 seconds. */
export function OneWebhook({ id }: { id: string }) {
  const [isRemoving, setRemoving] = useState(false);
  const state = address.value.params.get('state') ?? undefined;
  const path = `/webhooks/${encodeURIComponent(id)}`;
  const { data, error, reload } = useLoad(`${id} ${state}`, async (signal) => {
    const [hook, { items }] = await Promise.all([
      send<WebhookItem>('GET', path, { signal }),
      send<{ items: readonly DeliveryItem[] }>('GET', `${path}/deliveries`, { query: { l: LISTED, state }, signal }),
    ]);
    return { hook, deliveries: items };
  });
  useInterval(reload, LOOK_MS);
  if (error?.status === 404) return <Gone />;
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting />;
  const { hook, deliveries } = data;
  const retry = () =>
    void send<{ retried: number }>('POST', `${path}/retry`).then(({ retried }) => {
      say(texts.standing.retried(retried));
      reload();
    }, sayRefusal);
  return (
    <article class="page">
      <PageHead title={<Line>{hook.url}</Line>} about={describeEvents(hook)}>
        {may('write') && hook.deliveries.dead > 0 && (
          <button class="button button-first" onClick={retry}>
            {texts.standing.retry}
          </button>
        )}
        {may('write') && (
          <button class="button button-bad" onClick={() => setRemoving(true)}>
            {texts.remove}
          </button>
        )}
      </PageHead>
      <Facts hook={hook} />
      <div class="between">
        <h2>{texts.standing.deliveries}</h2>
        <Choice
          label={texts.standing.state}
          value={state ?? ''}
          options={[['', texts.fields.all], ...Object.entries(texts.standing.states)]}
          onChange={(next) => changeParams({ state: next }, { replace: true })}
        />
      </div>
      <p class="muted">{texts.standing.deliveriesAbout}</p>
      <Deliveries items={deliveries} isFiltered={state !== undefined} />
      {isRemoving && (
        <Remove
          kind={WEBHOOKS}
          item={hook}
          onClose={() => setRemoving(false)}
          onDone={() => go(hrefOf('standing', { tab: 'webhooks' }))}
        />
      )}
    </article>
  );
}

function Facts({ hook }: { hook: WebhookItem }) {
  return (
    <dl class="facts card-flat">
      <dt>{texts.fields.writtenBy}</dt>
      <dd>{hook.written_by ?? '–'}</dd>
      <dt>{texts.standing.dropped}</dt>
      <dd>
        {hook.last_dropped_at === null ? (
          '–'
        ) : (
          <>
            {count(hook.dropped)}, {texts.standing.lastDropped} <Time at={hook.last_dropped_at} />
          </>
        )}
      </dd>
    </dl>
  );
}

function Deliveries({ items, isFiltered }: { items: readonly DeliveryItem[]; isFiltered: boolean }) {
  if (items.length === 0)
    return <p class="notice">{isFiltered ? texts.standing.noneInState : texts.standing.noDeliveries}</p>;
  return (
    <Table label={texts.standing.deliveries} columns={texts.standing.deliveryColumns}>
      {items.map((delivery) => (
        <tr key={delivery.id}>
          <td>
            <Time at={delivery.at} />
          </td>
          <td>
            {delivery.event_id !== null && /^(memory|standing)\./.test(delivery.type) ? (
              <a href={hrefOf(['memory', delivery.event_id])}>{delivery.type}</a>
            ) : (
              delivery.type
            )}
          </td>
          <td>
            <span class={`chip ${LOOKS[delivery.state]}`}>{texts.standing.states[delivery.state]}</span>
          </td>
          <td class="right">{count(delivery.attempts)}</td>
          <td>{delivery.next_at === null ? '–' : <Time at={delivery.next_at} />}</td>
          <td>{delivery.last_error ?? '–'}</td>
        </tr>
      ))}
    </Table>
  );
}

function Gone() {
  return (
    <Empty title={texts.standing.hookGone}>
      <a class="button" href={hrefOf('standing', { tab: 'webhooks' })}>
        {texts.standing.allHooks}
      </a>
    </Empty>
  );
}
