import RTP

// Rules about session descriptions.

extension FindingRule {
  /// A section of an offer that Retake accepted as a whole and refused in part: of all codecs in it
  /// the peer has none.
  static let refusedSection = FindingRule(
    id: "refused-section", severity: .high, title: "Section of an offer refused",
    scope: .connection,
    sql: """
      WITH
        offer AS (
          SELECT request.row AS offer, request.peer AS peer, request.at_ns AS at_ns,
            request.arguments ->> '$._0.sdp' AS sdp,
            coalesce(peer.configuration -> '$.codecs', '[\(usualCodecs)]') AS codecs
          FROM call_request AS request JOIN peer USING (peer)
            JOIN call_reply AS reply ON reply.peer = request.peer AND reply.call = request.call
          WHERE request.name = 'setRemoteDescription'
            AND request.arguments ->> '$._0.type' = 'offer' AND reply.error IS NULL
        ),
        -- The lines; what separates them is no character of JSON that needs an escape.
        line AS (
          SELECT offer, json_each.key AS number, ltrim(rtrim(value, char(13) || ' ')) AS text
          FROM offer, json_each('[' || replace(
            json_quote(replace(sdp, char(10), char(8232))), char(8232), '","') || ']')
        ),
        placed AS (
          SELECT offer, number, text,
            count(*) FILTER (WHERE text LIKE 'm=%')
              OVER (PARTITION BY offer ORDER BY number) AS section
          FROM line
        ),
        section AS (
          SELECT offer, section,
            max(iif(text LIKE 'm=audio %', 'audio', iif(text LIKE 'm=video %', 'video', NULL)))
              AS kind,
            -- The formats stand behind the profile.
            max(iif(text LIKE 'm=%', substr(text, instr(text, '/')) || ' ', NULL)) AS formats,
            max(iif(text LIKE 'm=% 0 %/%', 1, 0)) > max(text = 'a=bundle-only') AS is_off,
            max(iif(text LIKE 'a=mid:%', substr(text, 7), NULL)) AS mid
          FROM placed WHERE section > 0 GROUP BY offer, section
        ),
        codec AS (
          SELECT offer, section, substr(text, instr(text, ' ') + 1) AS codec
          FROM placed WHERE text LIKE 'a=rtpmap:% %/%'
          UNION ALL
          -- Payload types that need no line of their own (RFC 3551 section 6).
          SELECT offer, section, name
          FROM section JOIN (
            SELECT ' 0 ' AS type, 'PCMU/8000' AS name UNION ALL SELECT ' 8 ', 'PCMA/8000'
            UNION ALL SELECT ' 3 ', 'GSM/8000' UNION ALL SELECT ' 9 ', 'G722/8000'
            UNION ALL SELECT ' 18 ', 'G729/8000' UNION ALL SELECT ' 34 ', 'H263/90000'
          ) ON instr(formats, type) > 0
        ),
        named AS (
          SELECT DISTINCT offer, section, codec,
            lower(substr(codec, 1, instr(codec, '/') - 1)) AS name
          FROM codec
        ),
        refused AS (
          SELECT peer, at_ns, offer, section, kind, mid, codec, codecs, name
          FROM section JOIN offer USING (offer) JOIN named USING (offer, section)
          WHERE kind IS NOT NULL AND NOT is_off AND name NOT IN ('rtx', 'telephone-event', 'cn')
          ORDER BY offer, section, codec
        )
      SELECT peer, at_ns AS from_ns, at_ns AS to_ns,
        'the offer''s ' || kind || coalesce(' (mid ' || mid || ')', '')
          || ' was refused: none of its codecs is supported ('
          || group_concat(codec, ', ') || ')' AS evidence
      FROM refused
      GROUP BY offer, section
      HAVING NOT max(name IN (SELECT lower(value) FROM json_each(codecs)))
      """)

  /// What a connection has whose configuration names no codecs.
  private static var usualCodecs: String {
    Codec.all.filter(\.isUsual).map { "\"\($0.spelling.lowercased())\"" }.joined(separator: ",")
  }
}
