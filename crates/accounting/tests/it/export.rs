//! Exports of rows.

use std::io;

use sluicegate_accounting::{Closed, ExportError, ExportFormat, RowQuery, export};

use crate::support::{append, closed, on_each, opened};

async fn exported(
    store: &dyn sluicegate_accounting::AccountingStore,
    format: ExportFormat,
) -> String {
    let first = Closed {
        target: Some("up \"1\", left".to_owned()),
        ..closed("r1", 2_000)
    };
    append(
        store,
        [
            opened("r1", 1_000).into(),
            first.into(),
            opened("r2", 1_000).into(),
            opened("r3", 3_000).into(),
        ],
    )
    .await;
    let mut out = Vec::new();
    // Pages of two rows, the last of which is not full.
    let query = RowQuery {
        limit: 2,
        ..RowQuery::default()
    };
    let rows = export(store, query, format, &mut out).await.unwrap();
    assert_eq!(rows, 3);
    String::from_utf8(out).unwrap()
}

#[tokio::test]
async fn rows_are_exported_as_csv() {
    on_each(async |store| {
        assert_eq!(
            exported(store, ExportFormat::Csv).await,
            "\
request_id,state,at_ms,closed_ms,replica,run,key,route,model,reserved_tokens,reserved_nanos,outcome,status,target,input,cache_read,cache_write,output,reasoning,pictures,cost_nanos
r1,closed,1000,2000,gateway-1,run-1,team-a,/v1/responses,model-5.5,500,9000,completed,200,\"up \"\"1\"\", left\",100,40,20,30,10,1,7000
r2,open,1000,,gateway-1,run-1,team-a,/v1/responses,model-5.5,500,9000,,0,,0,0,0,0,0,0,
r3,open,3000,,gateway-1,run-1,team-a,/v1/responses,model-5.5,500,9000,,0,,0,0,0,0,0,0,
"
        );
    })
    .await;
}

#[tokio::test]
async fn rows_are_exported_as_json_lines() {
    on_each(async |store| {
        let text = exported(store, ExportFormat::JsonLines).await;
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(
            lines[0],
            r#"{"request_id":"r1","state":"closed","at_ms":1000,"closed_ms":2000,"replica":"gateway-1","run":"run-1","key":"team-a","route":"/v1/responses","model":"model-5.5","reserved_tokens":500,"reserved_nanos":9000,"outcome":"completed","status":200,"target":"up \"1\", left","input":100,"cache_read":40,"cache_write":20,"output":30,"reasoning":10,"pictures":1,"cost_nanos":7000}"#
        );
    })
    .await;
}

#[tokio::test]
async fn an_export_ends_when_it_cannot_be_written() {
    struct Full;

    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    on_each(async |store| {
        append(store, [opened("r1", 1_000).into()]).await;
        for format in [ExportFormat::Csv, ExportFormat::JsonLines] {
            match export(store, RowQuery::default(), format, Full).await {
                Err(ExportError::Write(error)) => {
                    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
                }
                other => panic!("{other:?}"),
            }
        }
    })
    .await;
}
