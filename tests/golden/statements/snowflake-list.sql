SELECT
  "t2"."item",
  COALESCE("t5"."score", 0) AS "score"
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
    "t3"."item",
    COUNT(DISTINCT "t3"."who") AS "score"
  FROM (
    SELECT
      TO_BINARY("t1"."customer", 'UTF-8') AS "who",
      TO_BINARY("t1"."product", 'UTF-8') AS "item"
    FROM "mart"."sales" AS "t1"
  ) AS "t3"
  GROUP BY
    1
) AS "t5"
  ON TO_BINARY("t2"."item", 'UTF-8') = "t5"."item"
