SELECT
  `t2`.`item`,
  COALESCE(`t5`.`score`, 0) AS `score`
FROM (
  SELECT
    CAST(`item` AS STRING) AS `item`
  FROM VALUES
    ('tea'),
    ('it\'s \\ 😀'),
    ('rum ') AS listed(`item`)
) AS `t2`
LEFT OUTER JOIN (
  SELECT
    `t3`.`item`,
    COUNT(DISTINCT `t3`.`who`) AS `score`
  FROM (
    SELECT
      CAST(`t1`.`customer` AS BINARY) AS `who`,
      CAST(`t1`.`product` AS BINARY) AS `item`
    FROM `mart`.`sales` AS `t1`
  ) AS `t3`
  GROUP BY
    1
) AS `t5`
  ON CAST(`t2`.`item` AS BINARY) = `t5`.`item`
