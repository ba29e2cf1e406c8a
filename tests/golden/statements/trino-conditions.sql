SELECT
  "t2"."item",
  COALESCE("t7"."score", 0) AS "score"
FROM (
  SELECT
    CAST("item" AS VARCHAR) AS "item"
  FROM (VALUES
    ('tea'),
    ('it''s \ 😀'),
    ('rum ')) AS listed("item")
) AS "t2"
LEFT OUTER JOIN (
  SELECT
    "t5"."item",
    COUNT(DISTINCT "t5"."who") AS "score"
  FROM (
    SELECT
      TO_UTF8("t4"."customer") AS "who",
      TO_UTF8("t4"."product") AS "item"
    FROM (
      SELECT
        *
      FROM (
        SELECT
          *
        FROM "mart"."sales" AS "t1"
        WHERE
          CAST(NULL AS BIGINT) + 719163 BETWEEN 739617 AND 739647
          OR CAST(TO_UNIXTIME(WITH_TIMEZONE(DATE_TRUNC('SECOND', "t1"."at"), 'UTC')) AS BIGINT) + 62135683200 BETWEEN 63902908800 AND 63905587199
      ) AS "t3"
      WHERE
        TO_UTF8(REGEXP_REPLACE("t3"."country", '^ +| +\z', '')) = TO_UTF8('DE')
        AND "t3"."day" >= FROM_ISO8601_DATE('2026-01-01')
        AND FROM_UTF8(TO_UTF8("t3"."product")) LIKE 't%'
        AND "t3"."amount" < CAST('2.5' AS DOUBLE)
        AND "t3"."price" >= CAST('1.51' AS DECIMAL(12, 2))
    ) AS "t4"
  ) AS "t5"
  GROUP BY
    1
) AS "t7"
  ON TO_UTF8("t2"."item") = "t7"."item"
