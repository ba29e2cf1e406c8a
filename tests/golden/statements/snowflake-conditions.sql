SELECT
  "t2"."item",
  COALESCE("t7"."score", 0) AS "score"
FROM (
  SELECT
    CAST("item" AS VARCHAR) AS "item"
  FROM (VALUES
    ('tea'),
    ('it\'s \\ 😀'),
    ('rum ')) AS listed("item")
) AS "t2"
LEFT OUTER JOIN (
  SELECT
    "t5"."item",
    COUNT(DISTINCT "t5"."who") AS "score"
  FROM (
    SELECT
      TO_BINARY("t4"."customer", 'UTF-8') AS "who",
      TO_BINARY("t4"."product", 'UTF-8') AS "item"
    FROM (
      SELECT
        *
      FROM (
        SELECT
          *
        FROM "mart"."sales" AS "t1"
        WHERE
          CAST(NULL AS BIGINT) + 719163 BETWEEN 739617 AND 739647
          OR DATE_PART('epoch_second', DATE_TRUNC('SECOND', "t1"."at")) + 62135683200 BETWEEN 63902908800 AND 63905587199
      ) AS "t3"
      WHERE
        TO_BINARY(TRIM("t3"."country", ' '), 'UTF-8') = TO_BINARY('DE', 'UTF-8')
        AND "t3"."day" >= DATE_FROM_PARTS(2026, 1, 1)
        AND TO_CHAR(TO_BINARY("t3"."product", 'UTF-8'), 'UTF-8') LIKE 't%'
        AND "t3"."amount" < CAST('2.5' AS DOUBLE)
        AND "t3"."price" >= CAST('1.51' AS DECIMAL(12, 2))
    ) AS "t4"
  ) AS "t5"
  GROUP BY
    1
) AS "t7"
  ON TO_BINARY("t2"."item", 'UTF-8') = "t7"."item"
