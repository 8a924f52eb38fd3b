//! One command: in the body, in the path, and what is wrong with it.

use crate::support::rest;

#[tokio::test]
async fn a_command_in_the_body_answers_its_result() {
    rest()
        .await
        .golden(
            "/",
            &[
                (r#"["SET","k","v"]"#, 200, r#"{"result":"OK"}"#),
                (r#"["get","k"]"#, 200, r#"{"result":"v"}"#),
                (r#"["GET","absent"]"#, 200, r#"{"result":null}"#),
                (r#"["SET","ü \" \n","日本"]"#, 200, r#"{"result":"OK"}"#),
                (r#"["GET","ü \" \n"]"#, 200, r#"{"result":"日本"}"#),
                (r#"["INCR","n"]"#, 200, r#"{"result":1}"#),
                (r#"["ZADD","z",1.5,"a",2,"b"]"#, 200, r#"{"result":2}"#),
                (r#"["ZRANGE","z",0,-1,"WITHSCORES"]"#, 200, r#"{"result":["a","1.5","b","2"]}"#),
                (r#"["ZSCORE","z","a"]"#, 200, r#"{"result":"1.5"}"#),
                (r#"["HSET","h","f","1","g","2"]"#, 200, r#"{"result":2}"#),
                (r#"["HGETALL","h"]"#, 200, r#"{"result":["f","1","g","2"]}"#),
                (r#"["HMGET","h","f","x"]"#, 200, r#"{"result":["1",null]}"#),
                (r#"["SMEMBERS","absent"]"#, 200, r#"{"result":[]}"#),
                (r#"["TYPE","h"]"#, 200, r#"{"result":"hash"}"#),
                (r#"["PING"]"#, 200, r#"{"result":"PONG"}"#),
                (r#"["EVAL","return {1,{'a',false},'b'}",0]"#, 200, r#"{"result":[1,["a",null],"b"]}"#),
            ],
        )
        .await;
}

#[tokio::test]
async fn numbers_and_booleans_arrive_as_json_writes_them() {
    rest()
        .await
        .golden(
            "/",
            &[
                (r#"["ECHO",7]"#, 200, r#"{"result":"7"}"#),
                (r#"["ECHO",-9223372036854775808]"#, 200, r#"{"result":"-9223372036854775808"}"#),
                (r#"["ECHO",18446744073709551615]"#, 200, r#"{"result":"18446744073709551615"}"#),
                (r#"["ECHO",1732200000.123456]"#, 200, r#"{"result":"1732200000.123456"}"#),
                (r#"["ECHO",0.1]"#, 200, r#"{"result":"0.1"}"#),
                (r#"["ECHO",19.990000000000002]"#, 200, r#"{"result":"19.990000000000002"}"#),
                (r#"["ECHO",1.0]"#, 200, r#"{"result":"1.0"}"#),
                (r#"["ECHO", -0 ]"#, 200, r#"{"result":"-0"}"#),
                (r#"["ECHO",1e400]"#, 200, r#"{"result":"1e400"}"#),
                (r#"["ECHO",1E30]"#, 200, r#"{"result":"1E30"}"#),
                (r#"["ECHO",36893488147419103233]"#, 200, r#"{"result":"36893488147419103233"}"#),
                (r#"["MSET","n",1.50,"ü\ud83d\ude00\n",7,"b",true]"#, 200, r#"{"result":"OK"}"#),
                (r#"["MGET","n","ü😀\n","b"]"#, 200, r#"{"result":["1.50","7","true"]}"#),
                (r#"["ECHO",true]"#, 200, r#"{"result":"true"}"#),
                (r#"["ECHO",false]"#, 200, r#"{"result":"false"}"#),
            ],
        )
        .await;
}

#[tokio::test]
async fn what_the_server_rejects_is_400_with_its_words() {
    let rest = rest().await;
    let cases = [
        (r#"["SET","k","v"]"#, 200, r#"{"result":"OK"}"#),
        (
            r#"["HGET","k","f"]"#,
            400,
            r#"{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}"#,
        ),
        (r#"["GET"]"#, 400, r#"{"error":"ERR wrong number of arguments for 'get' command"}"#),
        (r#"["INCR","k"]"#, 400, r#"{"error":"ERR value is not an integer or out of range"}"#),
    ];
    rest.golden("/", &cases).await;
    let unknown = rest.command(r#"["NoSuch","secret"]"#).await;
    assert!(unknown.starts_with(r#"{"error":"ERR Command is not available: 'NOSUCH'."#), "{unknown}");
    assert!(!unknown.contains("secret"), "{unknown}");
}

#[tokio::test]
async fn a_malformed_body_is_400_and_executes_nothing() {
    let rest = rest().await;
    let cases = [
        ("", 400, r#"{"error":"EOF"}"#),
        ("[]", 400, r#"{"error":"ERR empty command"}"#),
        (r#"[""]"#, 400, r#"{"error":"ERR empty command"}"#),
        (r#"["SET","k",null]"#, 400, r#"{"error":"ERR null args are not supported"}"#),
        (r#"["SET",1.5,null]"#, 400, r#"{"error":"ERR null args are not supported"}"#),
        (r#"["SET",1.5,["v"]]"#, 400, r#"{"error":"ERR unsupported arg type: \"[\": json.Delim"}"#),
        (r#"["SET",1.5,1.]"#, 400, r#"{"error":"ERR failed to parse the request body at line 1, column 14"}"#),
        (r#"["SET","k",["v"]]"#, 400, r#"{"error":"ERR unsupported arg type: \"[\": json.Delim"}"#),
        (r#"["SET","k",{"a":1}]"#, 400, r#"{"error":"ERR unsupported arg type: \"{\": json.Delim"}"#),
        (r#"[["SET","k","v"]]"#, 400, r#"{"error":"ERR unsupported arg type: \"[\": json.Delim"}"#),
        (r#"{"SET":"k"}"#, 400, r#"{"error":"expected JSON array"}"#),
        (r#""SET""#, 400, r#"{"error":"expected JSON array"}"#),
        (r#"["SET","k""#, 400, r#"{"error":"ERR failed to parse the request body at line 1, column 10"}"#),
        (r#"["SET","k","v"] x"#, 400, r#"{"error":"ERR failed to parse the request body at line 1, column 17"}"#),
    ];
    rest.golden("/", &cases).await;
    let not_utf8 = rest.send("POST", "/", &[], b"[\"SET\",\"k\",\"\xff\"]").await;
    assert_eq!(not_utf8.status, 400);
    assert_eq!(rest.gateway.counts().commands, 0);
}

#[tokio::test]
async fn a_path_is_a_command_with_body_and_query_as_further_arguments() {
    let rest = rest().await;
    let cases: [(&str, &str, &[u8], &str); 12] = [
        ("GET", "/set/foo/bar", b"", r#"{"result":"OK"}"#),
        ("GET", "/get/foo", b"", r#"{"result":"bar"}"#),
        ("PUT", "/get/foo", b"", r#"{"result":"bar"}"#),
        ("GET", "/SET/a%2Fb%20c+d/%E2%82%AC", b"", r#"{"result":"OK"}"#),
        ("POST", "/", br#"["GET","a/b c+d"]"#, r#"{"result":"€"}"#),
        ("POST", "/set/foo?EX=100", b"{\"x\": 1}", r#"{"result":"OK"}"#),
        ("GET", "/get/foo", b"", r#"{"result":"{\"x\": 1}"}"#),
        ("GET", "/ttl/foo", b"", r#"{"result":100}"#),
        ("POST", "/set/foo?NX&GET", b"other", r#"{"result":"{\"x\": 1}"}"#),
        ("GET", "/set/empty/", b"", r#"{"result":"OK"}"#),
        ("GET", "/get/empty", b"", r#"{"result":""}"#),
        ("GET", "/echo?a+b", b"", r#"{"result":"a b"}"#),
    ];
    for (method, target, body, expected) in cases {
        let answer = rest.send(method, target, &[], body).await;
        assert_eq!((answer.status, answer.text()), (200, expected), "{method} {target}");
    }
    let head = rest.send("HEAD", "/get/foo", &[], b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    let nothing = rest.send("GET", "/", &[], b"").await;
    assert_eq!((nothing.status, nothing.text()), (400, r#"{"error":"EOF"}"#));
}

#[tokio::test]
async fn another_method_is_405() {
    let rest = rest().await;
    for method in ["DELETE", "PATCH", "OPTIONS"] {
        let answer = rest.send(method, "/get/k", &[], b"").await;
        assert_eq!((answer.status, answer.text()), (405, ""), "{method}");
    }
}

#[tokio::test]
async fn what_belongs_to_a_connection_or_the_server_is_refused_unsent() {
    let rest = rest().await;
    #[rustfmt::skip]
    let of_a_connection = [
        "AUTH", "client", "DISCARD", "EXEC", "HELLO", "MONITOR", "MULTI", "PSUBSCRIBE", "QUIT", "RESET", "SELECT",
        "SUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "UNWATCH", "WATCH",
    ];
    for name in of_a_connection {
        let answer = rest.send("POST", &format!("/{name}/0"), &[], b"").await;
        let expected = format!(
            r#"{{"error":"ERR Command \"{}\" is not allowed in REST or it has a special context path"}}"#,
            name.to_uppercase()
        );
        assert_eq!((answer.status, answer.text()), (400, expected.as_str()));
    }
    let unavailable = [
        ("BLPOP", r#"["BLPOP","k",0]"#),
        ("BZPOPMIN", r#"["bzpopmin","k",0]"#),
        ("WAIT", r#"["WAIT",1,0]"#),
        ("XREAD", r#"["XREAD","COUNT",1,"block",0,"STREAMS","s","$"]"#),
        ("XREADGROUP", r#"["XREADGROUP","GROUP","g","c","BLOCK",0,"STREAMS","s",">"]"#),
        ("XREADGROUP", r#"["XREADGROUP","group","streams","c","BLOCK",0,"STREAMS","s",">"]"#),
        ("CONFIG", r#"["CONFIG","SET","dir","/"]"#),
        ("SHUTDOWN", r#"["SHUTDOWN"]"#),
    ];
    for (name, body) in unavailable {
        let expected = format!(
            r#"{{"error":"ERR Command is not available: '{name}'. See https://upstash.com/docs/redis/overall/rediscompatibility for details"}}"#
        );
        assert_eq!(rest.command(body).await, expected);
    }
    assert_eq!(rest.gateway.counts().commands, 0);
    let a_stream_called_block = r#"["XREAD","COUNT",1,"STREAMS","BLOCK","0"]"#;
    assert_eq!(rest.command(a_stream_called_block).await, r#"{"result":null}"#);
    let a_group_called_block = r#"["XREADGROUP","GROUP","block","block","STREAMS","s",">"]"#;
    assert!(rest.command(a_group_called_block).await.starts_with(r#"{"error":"NOGROUP"#));
}
