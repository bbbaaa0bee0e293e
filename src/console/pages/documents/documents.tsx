import { useEffect, useState } from 'preact/hooks';
import { address, changeParams, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Choice, Empty, Failed, Field, PageHead, Time, Waiting } from '../../parts/basics.tsx';
import { bytes, count } from '../../parts/format.ts';
import { useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { may, session } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { DocumentItem, DocumentPage } from '../../types.ts';
import { Drop } from './drop.tsx';
import { followDocument } from './follow-document.ts';
import { nameOf, Progress, StateChip } from './progress.tsx';

const STATES = ['queued', 'processing', 'ready', 'empty', 'failed', 'cancelled'];
/** Number of documents on a page. */
const PAGE = 50;

/** Page with the list of all documents, and an area where new ones are dropped. */
export function Documents() {
  const { params } = address.value;
  const query = {
    l: PAGE,
    u: Number(params.get('u') ?? 0),
    user_id: params.get('user_id') ?? undefined,
    state: params.get('state') ?? undefined,
  };
  const { data, error, reload } = useLoad(JSON.stringify(query), (signal) =>
    send<DocumentPage>('GET', '/documents', { query, signal }),
  );
  return (
    <div class="page">
      <PageHead title={texts.documents.title} about={texts.documents.about} />
      {may('write') && <Drop onAccepted={reload} />}
      <div class="fields" role="search">
        {session.value?.caller?.user_id == null && (
          <Field
            label={texts.fields.user}
            placeholder={texts.fields.anyone}
            value={params.get('user_id') ?? ''}
            onChange={(user_id) => changeParams({ user_id, u: '' })}
          />
        )}
        <Choice
          label={texts.documents.state}
          value={params.get('state') ?? ''}
          onChange={(state) => changeParams({ state, u: '' })}
          options={[['', texts.fields.all], ...STATES]}
        />
      </div>
      {error !== undefined && <Failed error={error} retry={reload} />}
      {data === undefined && error === undefined && <Waiting />}
      {data?.items.length === 0 && (
        <NoDocument isFiltered={query.state !== undefined || query.user_id !== undefined || query.u > 0} />
      )}
      {data !== undefined && data.items.length > 0 && <List page={data} />}
    </div>
  );
}

function NoDocument({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty title={texts.documents.noneTitle}>
        <p>{texts.browse.nothing}</p>
        <a class="button" href={hrefOf('documents')}>
          {texts.browse.clear}
        </a>
      </Empty>
    );
  return (
    <Empty title={texts.documents.emptyTitle}>
      <p>{may('write') ? texts.documents.empty : texts.documents.emptyReader}</p>
    </Empty>
  );
}

function List({ page: { items, next } }: { page: DocumentPage }) {
  return (
    <>
      <div class="table-wrap" tabIndex={0} role="region" aria-label={texts.documents.title}>
        <table>
          <thead>
            <tr>
              <th>{texts.documents.name}</th>
              <th>{texts.documents.state}</th>
              <th class="right">{texts.documents.parts}</th>
              <th class="right">{texts.documents.size}</th>
              <th>{texts.documents.added}</th>
            </tr>
          </thead>
          <tbody>
            {items.map((document) => (
              <Row key={`${document.id} ${document.updated_at}`} first={document} />
            ))}
          </tbody>
        </table>
      </div>
      {next !== undefined && (
        <div>
          <button class="button" onClick={() => changeParams({ u: next })}>
            {texts.more}
          </button>
        </div>
      )}
    </>
  );
}

/** Shows a document as a row of the list, and follows its progress until the server has finished processing it. */
function Row({ first }: { first: DocumentItem }) {
  const [document, setDocument] = useState(first);
  useEffect(() => followDocument(first, setDocument), [first.id]);
  return (
    <tr>
      <td>
        <a href={hrefOf(['document', document.id])}>
          <Line>{nameOf(document)}</Line>
        </a>
        <div class="muted">
          {document.format ?? document.source}
          {document.user_id !== '' && ` · ${document.user_id}`}
        </div>
      </td>
      <td>
        <div class="stack-tight">
          <span>
            <StateChip document={document} />
          </span>
          <Progress document={document} />
        </div>
      </td>
      <td class="right number">{count(document.chunks)}</td>
      <td class="right number nowrap">{document.bytes === null ? '–' : bytes(document.bytes)}</td>
      <td>
        <Time at={document.created_at} />
      </td>
    </tr>
  );
}
